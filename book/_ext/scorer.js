// Prose first: pages of notebooks, of their runs and of the package's functions rank below all others in a search.
Scorer.score = ([page, , , , score]) => score - (/^(notebooks|gallery|runs|api)\//.test(page) ? 1000 : 0);
