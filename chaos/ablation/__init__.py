"""The lesson's experiment in figures: 60 steps at once against 30 + 30, and against 30 + 30 with something left out.

`omissions` says what is left out. `experiment` has the three kinds of life (at once, killed, resumed), `lives` runs one
of them, `lanes` several side by side; `weights` and `measuring` hold the weights after each step against the
reference's, `rows` puts a row together, `sizes` asks what the files hold and what half precision costs, `conducting` is
the whole. What comes of it is told by `chaos.reports.ablation` and what lies beside it. Torch is never imported here.
"""
