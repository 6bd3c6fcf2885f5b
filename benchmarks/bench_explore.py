"How long one redraw of the explorer takes at n = 2,000."

import torch

from benchmarks.timing import seconds


class Explore:
    def setup(self):
        from taskpriors.tools.explore import TaskExplorer

        self.explorer = TaskExplorer(
            torch.randn(2000, 64, generator=torch.Generator().manual_seed(0))
        )
        self.explorer.coordinates("pca")

    def track_redraw(self):
        from taskpriors.tools.explore import _redraw

        return seconds(
            lambda: _redraw(self.explorer, view="pca", warmth=1.0, n_classes=3), repeat=9
        )

    track_redraw.unit = "seconds (at most 0.3)"
