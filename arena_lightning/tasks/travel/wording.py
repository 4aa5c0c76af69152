"""The wording that the answer reader knows: patterns for picks, totals, ways, leaks and pleas.

English and Chinese. A pattern that finds too little costs an honest answer some credit; one that
finds too much can't be gamed, as nothing here earns points by itself.
"""

import re
from collections.abc import Mapping

MODE_WORDS: Mapping[str, str] = {
    "walking": r"walk(?:ing|s)?|on foot|步行|走路",
    "electrobike": r"electrobik\w*|e-?bik\w*|electric bik\w*|电动车|电动自行车",
    "bicycling": r"bicycl\w*|cycl(?:e|ing)|bik(?:e|ing)|骑行|骑车|自行车",
    "transit": r"transit|public transport\w*|metro|bus|tram|公交|地铁|公共交通",
    "driving": r"driv(?:e|ing)|taxi|car|驾车|开车|打车|自驾",
    "flight": r"fl(?:y|ight|ights|ying)|plane|航班|飞机",
    "train": r"trains?|rail|火车|高铁|列车",
}
MODES = re.compile(
    "|".join(rf"(?P<{mode}>(?<![a-z])(?:{words})(?![a-z]))" for mode, words in MODE_WORDS.items()),
    re.IGNORECASE,
)
PICK = re.compile(
    r"\b(?:pick|recommend\w*|(?:my|best|top) (?:choice|option)|best overall"
    r"|i(?:'d| would) (?:choose|take|go|suggest))\b"
    r"|推荐|建议选|首选",
    re.IGNORECASE,
)
TOTAL = re.compile(
    r"\b(?:totals?|in total|sum|altogether)\b|总计|合计|共计|总共|总费用", re.IGNORECASE
)
WEATHER = re.compile(
    r"\b(?:weather|forecast|rain|sunny|cloud\w*|snow|temperature)\b|天气|气温|降雨", re.I
)
TOOL_SYNTAX = re.compile(
    r"</?(?:tool_call|tool_response|think|function|im_start|im_end)|<\|"
    r"|[\"']?(?:arguments|name)[\"']\s*:"
    r"|\b(?:poi_search|around_search|search_flights|search_train_tickets|web_search)\b|\bdirection\(|\bweather\(",
    re.IGNORECASE,
)
TO_THE_JUDGE = re.compile(
    r"\b(?:judges?|grad(?:e|er|ing)|evaluat\w*|scor(?:e|es|ed|ing)|rubric|marks?|instructions?"
    r"|10\s*/\s*10|(?:ten|10) (?:points|out of))\b|评委|评审|打分|满分|裁判|给.{0,4}高分",
    re.IGNORECASE,
)
DAY = re.compile(r"\bDay \d+|第\w天", re.IGNORECASE)
BULLET = re.compile(r"^\s*(?:[-*•·+]|\d{1,2}[.)、]|\|)\s*")
BEFORE_DIFFERENCE = re.compile(r"(?:\bby|saves?|saving|extra|省|快|慢|便宜|贵)\W*$", re.IGNORECASE)
AFTER_DIFFERENCE = re.compile(
    r"^\W*(?:faster|slower|cheaper|dearer|more|less|longer|shorter|earlier|later)\b", re.IGNORECASE
)
RIDE = re.compile(r"\b[A-Z]{1,3}\d{2,4}\b")
RUN = re.compile(r"(?<!\w)[A-Z][\w'’&-]*+(?:[ \t]+[A-Z][\w'’&-]*+){1,4}")
HEAD = re.compile(r"^[\s*_]*([^:：|(（,，;–—]{2,40}?)[*_]*\s*(?:[:：|(（,，;–—]|\s-\s|$)")
LABEL = re.compile(
    r"\b(?:ratings?|prices?|costs?|hours?|open\w*|clos\w*|distances?|times?|notes?|tips?|budget"
    r"|why|reasons?|address|transport\w*|depart\w*|arriv\w*|durations?|days?|morning|noon|lunch"
    r"|afternoon|evening|dinner|breakfast|night|stay|hotels?|routes?|walk\w*|from|to|options?"
    r"|per|party|people|persons?)\b"
    r"|评分|价格|费用|营业|距离|时间|提示|预算|理由|第.天|上午|中午|午餐|下午|晚餐|晚上|住宿|酒店|路线|人",
    re.IGNORECASE,
)
