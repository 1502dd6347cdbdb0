/* Stands before the script of the search's worker: words that say nothing are left out of a question, as each of them
   would match whatever begins with it. */
(() => {
  const SILENT = new Set(
    ("a an and are as at be by can come comes did do does each for from get give has have how i in into is it its me " +
     "much my need not now of on one or own so than that the then there to up was we what when where which who why " +
     "will with you").split(" "));
  const QUERY = 2;
  const listen = self.addEventListener;
  const kept = (text) => {
    const words = text.split(/\s+/).map((word) => word.replace(/[?!.,;:]+$/, "")).filter((word) => !SILENT.has(word.toLowerCase()));
    return words.join("") === "" ? text : words.join(" ");
  };
  self.addEventListener = (kind, handler) =>
    listen.call(self, kind, (event) =>
      handler({ data: event.data.type === QUERY ? { ...event.data, data: kept(event.data.data) } : event.data }));
})();
