"""How to read a report: the terms on its page."""

from __future__ import annotations

READING = {
    "Series": "A strategy, with the setting, model, batch or objective where these vary within a data set. Each "
    "series is compared with the baseline run under the same conditions, or the nearest to them.",
    "Mean and gain": "The test metric averaged over the label counts after the first training. A gain is the "
    "difference to the baseline, paired by seed; positive is better, also for errors. Its interval is Student's t "
    "over seeds and says nothing about other splits or data sets.",
    "Area": "Trapezoid under the curve over labels, divided by the range of labels.",
    "Labels": "Every label bought, those of a validation set included.",
    "Labels needed": "For 97 % of the best baseline's mean final value (for errors: 97 % of its reduction since the "
    "first round). Raw curves, straight lines between rounds, the first crossing that also holds at the next round. "
    "“> 1600” means that this did not happen within 1600 labels; such campaigns are counted with 1600 labels.",
    "Ratio": "Labels needed over labels the other needs, per seed; geometric mean. Below 1 saves labels. “<” says "
    "that the other never got there on some seeds (the ratio is at most this), “>” that the series did not (at least "
    "this), “?” that both happened: it may err either way. It is empty where nobody got there. Neither of the last "
    "two is part of the mean over data sets. The interval is a paired bootstrap over seeds (and data sets), with the "
    "target held fixed; with few seeds it is too narrow, and fewer than five are not coloured.",
    "Tests": "Two-sided, on the paired means. Holm's correction covers one table. With n seeds Wilcoxon's test cannot "
    "go below 2/2ⁿ: five seeds give .0625 at best.",
    "Wins / ties / losses": "Over data sets; a tie is a paired difference whose 95 % interval holds 0. Not corrected.",
    "Unfinished campaigns": "They appear in the curves and are left out of means, gains and tests.",
}
