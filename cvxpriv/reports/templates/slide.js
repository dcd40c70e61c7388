for (const slider of document.querySelectorAll(".slider")) {
  const states = JSON.parse(slider.dataset.states);
  const input = slider.querySelector("input");
  const marker = slider.querySelector("circle.here");
  const name = slider.querySelector("output");
  const values = [...slider.querySelectorAll("dd")];
  const table = slider.querySelector("table");
  const cell = (kind, text) => {
    const made = document.createElement(kind);
    made.textContent = text;
    return made;
  };
  const fill = (state) => {
    const head = table.tHead.rows[0];
    head.replaceChildren(head.cells[0], ...state.columns.map((column) => {
      const heading = cell("th", column);
      heading.scope = "col";
      return heading;
    }));
    [...table.tBodies[0].rows].forEach((row, index) => {
      row.replaceChildren(row.cells[0], ...state.cells[index].map(([text, shade]) => {
        const made = cell("td", text);
        made.style.setProperty("--share", shade + "%");
        return made;
      }));
    });
  };
  const show = () => {
    const state = states[Number(input.value)];
    marker.setAttribute("cx", state.x);
    marker.setAttribute("cy", state.y);
    name.textContent = state.name;
    input.setAttribute("aria-valuetext", state.name);
    values.forEach((value, index) => { value.textContent = state.shown[index]; });
    if (table && state.columns) fill(state);
  };
  input.addEventListener("input", show);
  slider.querySelector(".control").hidden = false;
  show();
}
