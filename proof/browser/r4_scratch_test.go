// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"testing"

	"github.com/metehq/mete/proof/browser"
)

func TestR4Scratch(t *testing.T) {
	site := browser.Serve(t, playPolicy)
	page := playing(t, site, browser.Desktop, browser.Light, "?lane=token_bucket,100/1s,capacity=100&lane=leaky_bucket,100/1s,queue=100&lane=sliding_log,1000/10s&lane=fixed_window,100/1s&phase=steady,rate=200,seconds=100")
	page.WaitText(lane(3)+" .play-totals", "of 20,000")
	t.Log(browser.Eval[string](page, `(async () => {
	const out = {};
	const r0 = performance.now();
	const raw = await (await fetch('data/play', {method:'POST', headers:{'Content-Type':'application/json', Authorization:'Bearer '+Object.values(sessionStorage).find(v=>v.length>10)}, body: JSON.stringify({lanes:[{algorithm:'token_bucket',tokens:'100',per:'1s',capacity:'100'}],traffic:{phases:[{shape:'steady',rate:'200',seconds:'100'}]}})})).text();
	out.fetch1 = performance.now()-r0; out.bytes = raw.length;
	let longest = 0, total = 0;
	new PerformanceObserver(l => { for (const e of l.getEntries()) { longest = Math.max(longest, e.duration); total += e.duration; } }).observe({entryTypes:['longtask']});
	const s = document.querySelector('.play-lane-a [data-place="/lanes/0/capacity"] input[type=range]');
	const t0 = performance.now();
	for (let i = 0; i < 20; i++) { s.value = String(5+i); s.dispatchEvent(new Event('input')); await new Promise(r => setTimeout(r, 30)); }
	const t1 = performance.now();
	const want = s.closest('.play-field').querySelector('.play-number').value;
	while (!document.querySelector('.play-lane-a .play-limit').textContent.includes('capacity ' + want)) await new Promise(r => setTimeout(r, 10));
	out.dragToDrawn = performance.now() - t1;
	await new Promise(r => setTimeout(r, 300));
	out.longest = longest; out.total = total;
	longest = 0; total = 0;
	document.querySelector('.play-button').click();
	let frames = 0; const f0 = performance.now();
	while (performance.now() - f0 < 3000) { await new Promise(requestAnimationFrame); frames++; }
	document.querySelector('.play-button').click();
	out.fps = frames/3; out.playLongest = longest; out.playTotal = total;
	const k0 = performance.now();
	document.querySelector('.play-lane-a .play-table').open = true;
	await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame);
	out.table = performance.now()-k0;
	out.nodes = document.querySelectorAll('*').length;
	return JSON.stringify(out);
	})()`))
	page.ScreenshotAll("big")
	p2 := playing(t, site, browser.Phone, browser.Dark, "?preset=first-steps")
	_ = p2
	p3 := playing(t, site, browser.Desktop, browser.Light, "?preset=first-steps")
	p3.Screenshot("first")
	p3.Click("button", "Play")
	p3.Poll("p", "Number.parseFloat(document.querySelector('.play-clock').textContent) > 5.3")
	p3.Click("button", "Pause")
	p3.ScreenshotAll("first-playing")
	p2.ScreenshotAll("first")
	p4 := playing(t, site, browser.Desktop, browser.Light, "?preset=intervals")
	p4.ScreenshotAll("intervals")
	p4.Fill("Example", "queue-smooths")
	p4.WaitText(lane(1)+" .play-totals", "45 of 45")
	p4.ScreenshotAll("queue")
	p4.Fill("Example", "retry-herd")
	p4.WaitText(lane(3)+" .play-totals", "100 of 100")
	p4.ScreenshotAll("herd")
}
