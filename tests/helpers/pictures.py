"""Pictures as users see them: which colors they show."""

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.image import imread


def shows(file, *colors, least=20):
    """Whether a PNG file has at least `least` pixels of each of these colors."""
    pixels = np.rint(imread(file)[..., :3] * 255).astype(int)
    wanted = [np.rint(np.array(to_rgb(color)) * 255).astype(int) for color in colors]
    return all((abs(pixels - rgb).max(axis=-1) <= 2).sum() >= least for rgb in wanted)
