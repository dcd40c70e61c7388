"""An explorer of the trade-off, as a notebook application.

    marimo run examples/explorer.py        # as an application in the browser
    marimo edit examples/explorer.py       # to change it
    python examples/explorer.py            # without a browser: every cell runs once

It needs `pip install "cvxpriv[explore]"`.
"""

import marimo

app = marimo.App(width="medium", app_title="cvxpriv: the privacy-utility trade-off")


@app.cell
def libraries():
    import marimo as mo

    import cvxpriv as cpv
    from cvxpriv import datasets
    from cvxpriv.models import InferenceAsService, PrivacyFunnel

    return InferenceAsService, PrivacyFunnel, cpv, datasets, mo


@app.cell
def data(datasets, mo):
    counts = datasets.load_table("heart-failure")
    columns = [str(name) for name in counts.columns if name != "count"]
    private = mo.ui.multiselect(columns, value=["sex", "death"], label="S, to be kept private")
    public = mo.ui.multiselect(columns, value=["anaemia", "smoking"], label="X, to be published in disguise")
    mo.vstack([mo.md("# Heart failure: 299 patients"), mo.hstack([private, public])])
    return counts, private, public


@app.cell
def question(mo):
    model = mo.ui.dropdown(["privacy funnel", "inference as a service"], value="privacy funnel", label="problem")
    rate = mo.ui.slider(0.05, 1.0, step=0.05, value=0.8, label="rate, as a part of H(X)")
    beta = mo.ui.slider(0.02, 0.5, step=0.02, value=0.1, label="beta, the weight of privacy")
    divergence = mo.ui.text(value="jensen-shannon", label="f: a name, or a line of text in t")
    epsilon = mo.ui.slider(0.0, 4.0, step=0.25, value=0.0, label="local differential privacy, epsilon (0: none)")
    mo.vstack([model, mo.hstack([rate, beta]), mo.hstack([divergence, epsilon])])
    return beta, divergence, epsilon, model, rate


@app.cell
def answer(InferenceAsService, PrivacyFunnel, beta, counts, cpv, divergence, epsilon, mo, model, private, public, rate):
    run = None
    try:
        table = cpv.JointTable.from_frame(counts, private=private.value, public=public.value, count="count")
        if model.value == "privacy funnel":
            posed = PrivacyFunnel(table, rate=rate.value)
        else:
            posed = InferenceAsService(table, beta=beta.value, divergence=divergence.value)
        if epsilon.value > 0:
            posed = posed.constrain("ldp", cpv.constraints.local_differential_privacy(epsilon.value))
        run = posed.solve(seed=0)
        told = mo.md(f"```\n{run!r}\n```")
    except cpv.CvxprivError as error:
        told = mo.callout(str(error), kind="warn")
    mo.vstack([told])
    return posed, run, table


@app.cell
def pictures(cpv, epsilon, mo, model, posed, run, table):
    shown = []
    if run is not None:
        shown.append(cpv.plot_mechanism(run.mechanism, table.public))
        if model.value == "privacy funnel" and epsilon.value == 0:
            band = posed.curve(10, certified=True)
            chosen = (run.utility, run.leakage)
            shown.append(cpv.plot_curve(band, lower="lower", entropy_x=table.entropy_x, chosen=chosen))
    mo.hstack(shown)
    return (shown,)


@app.cell
def adversary(cpv, mo, run, table):
    guesses = None
    if run is not None:
        rows = ["accuracy_nothing", "accuracy_y", "accuracy_x"]
        guesses = cpv.disclosure(table, run.mechanism, seed=0).frame.loc[rows, ["measure", "value", "low", "high"]]
    mo.ui.table(guesses) if guesses is not None else mo.md("")
    return (guesses,)


if __name__ == "__main__":
    app.run()
