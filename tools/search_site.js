// Prints what the search of a built site finds: `node tools/search_site.js SITE QUERY...`
// writes {query: [pages, best first]} as JSON. It runs the site's search/search.js and its
// worker, so that the answers are those of the site.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [site, ...queries] = process.argv.slice(2);
const workers = path.join(site, "assets/javascripts/workers");
const file = fs.readdirSync(workers).find((name) => /^search\..*\.min\.js$/.test(name));
const { config, docs } = JSON.parse(fs.readFileSync(path.join(site, "search/search_index.json")));

// The worker, as a browser would run it.
const answers = [];
let receive;
const inside = {
  console: { warn() {} },
  postMessage: (message) => answers.push(message),
  addEventListener: (_, listener) => { receive = listener; },
};
inside.self = inside;
vm.runInNewContext(fs.readFileSync(path.join(workers, file), "utf8"), inside);

// The page, where search.js stands between the theme and the worker.
const page = { location: { protocol: "https:" }, console };
page.window = page;
page.Worker = class { postMessage(message) { receive({ data: message }); } };
vm.runInNewContext(fs.readFileSync(path.join(site, "search/search.js"), "utf8"), page);
const worker = new page.window.Worker("");

// In the browser, too, the index is set up before the first query (types 0 and 2).
worker.postMessage({ type: 0, data: { config, docs, options: { suggest: false } } });
setTimeout(() => {
  for (const query of queries) worker.postMessage({ type: 2, data: query });
  setTimeout(() => {
    const found = answers.filter((answer) => answer.type === 3).map((answer) =>
      answer.data.items.map((page) => page[page.length - 1].location.split("#")[0]));
    console.log(JSON.stringify(Object.fromEntries(queries.map((q, n) => [q, found[n]]))));
  });
});
