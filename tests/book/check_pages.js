// What `check_pages.py` asks of a page: `checks` is there before the page's own scripts run.
const checks = (() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const named = (element) => {
    const own = element.id ? `#${element.id}` : [...element.classList].map((name) => `.${name}`).join('');
    const words = (element.textContent || '').trim().replace(/\s+/g, ' ').slice(0, 60);
    return `${element.tagName.toLowerCase()}${own}${words ? ` "${words}"` : ''}`;
  };
  const kept = (element) => {
    if (!element) return false;
    const style = getComputedStyle(element);
    return style.overflowX !== 'visible' || style.position === 'fixed' || kept(element.parentElement);
  };
  const pixels = (element) => `${element.scrollWidth} of ${element.clientWidth} pixels`;

  // Details and all tabs are opened, so that what is folded away is checked too; colours are read once they have changed.
  const ready = () => {
    const style = '* {transition: none !important; animation: none !important} .sd-tab-content {display: block !important}';
    document.head.insertAdjacentHTML('beforeend', `<style>${style}</style>`);
    all('details').forEach((one) => { one.open = true; });
    return document.fonts.ready.then(() => null);
  };

  // [kind, element, what it is] for each fault of the page as it is now.
  const faults = () => {
    const found = [];
    const page = document.documentElement;
    if (page.scrollWidth > page.clientWidth) {
      const wide = all('body *').filter((one) => one.getBoundingClientRect().right > page.clientWidth + 1 && !kept(one));
      const deepest = wide.filter((one) => !wide.some((other) => other !== one && one.contains(other)));
      found.push(['overflow', deepest.slice(0, 3).map(named).join(', '), pixels(page)]);
    }
    for (const block of all('pre')) {
      if (block.scrollWidth > block.clientWidth) found.push(['clipped code', named(block), pixels(block)]);
    }
    for (const image of all('img')) {
      const decoration = image.closest('[aria-hidden="true"], [role="presentation"], [role="none"]');
      if (!decoration && !image.alt.trim()) found.push(['no alt', named(image), (image.getAttribute('src') || '').slice(0, 80)]);
    }
    return found;
  };

  const broken = async (options) => {
    const told = (node, rule) => [...node.any, ...node.all, ...node.none][0]?.message ?? rule.help;
    const { violations } = await axe.run(document, { resultTypes: ['violations'], ...options });
    const of = (rule) => (node) => [`axe ${rule.id}`, `${node.target.flat().join(' ')} ${node.html.slice(0, 120)}`, told(node, rule)];
    return violations.flatMap((rule) => rule.nodes.map(of(rule)));
  };

  const links = () => ({
    ids: all('[id], a[name]').flatMap((one) => [one.id, one.name]),
    links: all('a[href]').map((one) => one.href),
  });
  return { ready, faults, broken, links };
})();
