// What is wrong with a page as it is now: a list of [kind, element, what] for each fault.
(() => {
  const named = (element) => {
    const own = element.id ? `#${element.id}` : [...element.classList].map((name) => `.${name}`).join('');
    const words = (element.textContent || '').trim().replace(/\s+/g, ' ').slice(0, 60);
    return `${element.tagName.toLowerCase()}${own}${words ? ` "${words}"` : ''}`;
  };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const found = [];
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) {
    const kept = (element) => element && (getComputedStyle(element).overflowX !== 'visible' || kept(element.parentElement));
    const wide = all('body *').filter((element) => {
      const box = element.getBoundingClientRect();
      return box.right > page.clientWidth + 1 && box.width && !kept(element.parentElement);
    });
    const deepest = wide.filter((element) => !wide.some((other) => other !== element && element.contains(other)));
    found.push(['overflow', deepest.slice(0, 3).map(named).join(', '), `${page.scrollWidth} of ${page.clientWidth} pixels`]);
  }
  for (const block of all('pre')) {
    if (block.scrollWidth > block.clientWidth) found.push(['clipped code', named(block), `${block.scrollWidth} of ${block.clientWidth} pixels`]);
  }
  for (const image of all('img')) {
    const decoration = image.closest('[aria-hidden="true"], [role="presentation"], [role="none"]');
    if (!decoration && !(image.alt || '').trim()) found.push(['no alt', named(image), image.getAttribute('src').slice(0, 80)]);
  }
  return found;
})()
