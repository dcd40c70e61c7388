for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const headings = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.sort ?? cell.textContent;
    return cell.classList.contains("number") || cell.classList.contains("verdict") ? (text === "" ? NaN : Number(text)) : text;
  };
  const compare = (a, b) => {
    if (typeof a === "string" || typeof b === "string") return String(a).localeCompare(String(b));
    return Number.isNaN(a) ? (Number.isNaN(b) ? 0 : 1) : Number.isNaN(b) ? -1 : a < b ? -1 : a > b ? 1 : 0;
  };
  headings.forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => {
      const now = heading.getAttribute("aria-sort");
      const next = now === "none" ? "ascending" : now === "ascending" ? "descending" : "none";
      headings.forEach((other) => other.setAttribute("aria-sort", "none"));
      heading.setAttribute("aria-sort", next);
      const sign = next === "descending" ? -1 : 1;
      const known = (row) => !Number.isNaN(key(row, column));
      const order = (a, b) => {
        if (known(a) !== known(b)) return known(a) ? -1 : 1;
        return sign * compare(key(a, column), key(b, column));
      };
      body.append(...(next === "none" ? original : [...original].sort(order)));
    });
  });
}
