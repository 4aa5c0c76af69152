"""Query templates: training and test have their own, in English and Chinese."""

Templates = dict[str, dict[str, tuple[str, ...]]]

ENGLISH: Templates = {
    "search_around": {
        "train": (
            "I'm staying at {near} in {city}. Find {count} {kinds} within {km} km{limits}. "
            "Which one should I take, and how long is the walk?",
            "Near {near}, {city}: list {count} {kinds} no farther than {km} km{limits}. "
            "Tell me your pick and the walking time to it.",
            "We need {count} {kinds} around {near} ({city}), at most {km} km away{limits}. "
            "Recommend one and say how long we walk.",
        ),
        "test": (
            "Could you look for {count} {kinds} close to {near} in {city}, up to {km} km{limits}? "
            "I'd also like a favourite and the walk there.",
            "My base in {city} is {near}. What are {count} good {kinds} within {km} km{limits}? "
            "Say which is best and how far the walk is in minutes.",
        ),
    },
    "direction": {
        "train": (
            "How do I get from {origin} to {destination} in {city}{via} on {date}? "
            "Compare {modes} and say which is better given the weather.",
            "On {date} in {city} I go from {origin} to {destination}{via}. Give time and cost for "
            "{modes}, and your advice. Mind the weather.",
        ),
        "test": (
            "{city}, {date}: what is the best way from {origin} to {destination}{via}? I am "
            "choosing between {modes}; consider the weather.",
            "Going to {destination} from {origin}{via} ({city}, {date}): {modes}, how long and how "
            "dear is each, and which suits the weather?",
        ),
    },
    "compare_itinerary": {
        "train": (
            "{party} of us travel from {start} to {end} on {date}. Compare plane and train: times, "
            "prices, the total for all of us, and what the weather is like in {end}.",
            "Plane or train from {start} to {end} on {date} for {party}? Give one option of each, "
            "the total for your pick, and the weather in {end}.",
        ),
        "test": (
            "We are {party} people going to {end} from {start} on {date}. Should we fly or take "
            "the train? Times, prices, our total and the weather there, please.",
            "Weigh a flight against a train, {start} to {end}, {date}, {party} travellers: when, "
            "how much each and in all, and is it going to rain in {end}?",
        ),
    },
    "one_day_travel": {
        "train": (
            "Plan {date} in {city} for {party}: {wishes}, lunch included{budget}. "
            "Give times, the weather, how to get around and the total.",
            "One day in {city} on {date} for {party}{budget}, with {wishes} and a lunch. Mind "
            "opening hours and weather; add the way between the stops and the total.",
        ),
        "test": (
            "A single day in {city} for {party}, {date}{budget}: please arrange {wishes} with "
            "lunch in between, hours, weather, transport and what it costs in total.",
        ),
    },
    "multi_day_travel": {
        "train": (
            "Plan {days} days in {city} from {date} for {party}{budget}: each day {wishes} and "
            "lunch, plus a hotel. Give times, weather, transport and the total.",
        ),
        "test": (
            "{city} from {date}, {days} days for {party}{budget}: find a hotel, and arrange "
            "{wishes} and lunch for every day, with hours, weather, transport and the total cost.",
        ),
    },
}
CHINESE: Templates = {
    "search_around": {
        "train": (
            "我住在{city}的{near}，请找{km}公里内的{count}家{kinds}{limits}，推荐一家并说明步行时间。",
            "{city}{near}附近{km}公里内有哪{count}家{kinds}{limits}？选一家，步行多久？",
        ),
        "test": (
            "请在{city}{near}周边{km}公里内挑{count}家{kinds}{limits}，哪家最好，走过去要几分钟？",
        ),
    },
    "direction": {
        "train": (
            "{date}在{city}从{origin}到{destination}{via}，比较{modes}的时间和费用，结合天气给出建议。",
        ),
        "test": (
            "{city}，{date}，从{origin}去{destination}{via}，{modes}哪种更合适？请考虑天气。",
        ),
    },
    "compare_itinerary": {
        "train": (
            "{party}人{date}从{start}到{end}，比较飞机和火车的时间、价格、总价，以及{end}的天气。",
        ),
        "test": (
            "我们{party}人{date}去{end}（从{start}出发），坐飞机还是火车？要时间、价格、总费用和当地天气。",
        ),
    },
    "one_day_travel": {
        "train": (
            "请安排{date}在{city}的一天，{party}人{budget}：{wishes}，含午餐。要时间、天气、交通和总费用。",
        ),
        "test": (
            "{party}人{date}在{city}玩一天{budget}，想去{wishes}，中间吃午餐，请给出时间、天气、交通和总花费。",
        ),
    },
    "multi_day_travel": {
        "train": (
            "请安排从{date}起在{city}的{days}天，{party}人{budget}：每天{wishes}和午餐，含酒店、天气、交通和总费用。",
        ),
        "test": (
            "{party}人从{date}起在{city}住{days}天{budget}，每天安排{wishes}和午餐，并订酒店，给出天气和总费用。",
        ),
    },
}
