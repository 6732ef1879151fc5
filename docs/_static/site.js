// What the theme leaves out for those who read by keyboard or by a screen reader.
addEventListener("DOMContentLoaded", () => {
  for (const heading of document.querySelectorAll('[role="heading"]:not([aria-level])'))
    heading.setAttribute("aria-level", "2");
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Pages");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "On this page");
  // Parameters of long signatures are lists without a term.
  for (const list of document.querySelectorAll(".sig dl")) {
    const term = document.createElement("dt");
    term.textContent = "parameters";
    term.className = "for-screen-readers";
    list.prepend(term);
  }
  for (const region of document.querySelectorAll("pre, .table-wrapper, div.math"))
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
});
