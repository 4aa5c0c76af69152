"""What litellm warns of by itself, and no test of ours is about."""

LITELLM_WARNINGS = (
    # Its pydantic models, when they are first built.
    "ignore::UserWarning:pydantic",
    # A call cancelled while one of its threads still prepares it leaves a coroutine behind, which
    # Python finds whenever it cleans up: maybe in another test.
    "ignore:coroutine .*async_completion. was never awaited:RuntimeWarning",
)


def pytest_configure(config):
    for line in LITELLM_WARNINGS:
        config.addinivalue_line("filterwarnings", line)
