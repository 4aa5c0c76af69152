"""Pictures of a study show every source that has something to show."""

from arena_lightning.reporting.study_figures import step_curves


def row(source, size, groups_per_step):
    return {
        "source": source,
        "size": size,
        "groups_per_step": groups_per_step,
        "topology": "anchor",
        "presentation": "both",
        "step_cosine": 0.7,
        "step_cosine_sd": 0.1 / groups_per_step,
    }


def test_a_source_of_small_groups_is_drawn_at_its_largest_size():
    rows = [row("simulated", size, count) for size in (8, 16, 32) for count in (1, 4)]
    rows += [row("recorded", size, count) for size in (4, 7) for count in (1, 4)]
    panels = step_curves(rows, ["simulated", "recorded"], 16).axes
    assert [panel.get_title() for panel in panels] == ["simulated, N = 16", "recorded, N = 7"]
    for panel in panels:
        (line,) = panel.get_lines()
        assert list(line.get_xdata()) == [1, 4] and list(line.get_ydata()) == [0.7, 0.7]
