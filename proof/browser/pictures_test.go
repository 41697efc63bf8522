// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/metehq/mete/proof/browser"
)

// shop is the policy of the pictures: two limits that deny, and one in shadow.
const shop = `rules:
  - name: search
    match: { path: "/search*" }
    limit_keys: ["header:x-user"]
    algorithm: token_bucket
    algorithm_config: { rate: "10/1s", burst: 20 }
  - name: checkout
    match: { path: /checkout }
    limit_keys: ["header:x-user"]
    algorithm: token_bucket
    algorithm_config: { rate: "30/1m", burst: 10 }
  - name: pages
    match: { method: GET }
    limit_keys: ["header:x-user"]
    algorithm: token_bucket
    algorithm_config: { rate: "20/1s", burst: 40 }
  - name: everybody
    limit_keys: ["ip:address"]
    algorithm: token_bucket
    algorithm_config: { rate: "100/1s", burst: 100 }
  - name: per-address
    group: addresses
    limit_keys: ["ip:address"]
    algorithm: token_bucket
    algorithm_config: { rate: "12/1s", burst: 20 }
    mode: shadow
`

// TestPictures draws the pictures of the README, at twice the size of the screen, light and
// dark. scripts/pictures keeps them: METE_PICTURES is their directory, and then a minute of
// traffic comes first.
func TestPictures(t *testing.T) {
	t.Parallel()
	dir, rounds := os.Getenv("METE_PICTURES"), 2
	if dir == "" {
		dir = t.TempDir()
	} else {
		rounds = 80
	}
	site := browser.Serve(t, shop)
	pages := map[browser.Theme]*browser.Page{}
	for _, theme := range []browser.Theme{browser.Light, browser.Dark} {
		pages[theme] = overview(t, site, browser.Picture, theme)
	}
	began := time.Now()
	for second := range rounds {
		shopping(site, second)
		next := began.Add(time.Duration(second+1) * time.Second).UnixMilli()
		pages[browser.Light].Poll("the next second", fmt.Sprintf("Date.now() >= %d", next))
	}
	for theme, page := range pages {
		page.WaitText("table.over-rules", "search")
		page.WaitText(".top-keys", "user")
		page.PictureOf(filepath.Join(dir, fmt.Sprintf("overview-%s.png", theme)), "body", ".over-lists")
		played := openPlayground(t, site, browser.Picture, theme, "?preset=burst-and-recover")
		played.PictureOf(filepath.Join(dir, fmt.Sprintf("playground-%s.png", theme)), "#main .page", ".play-lane")
	}
}

// TestPictures_Animated draws the animated picture of the README: the playground plays two limits on the same
// traffic. Without METE_PICTURES it draws a few frames only.
func TestPictures_Animated(t *testing.T) {
	t.Parallel()
	dir, frames := os.Getenv("METE_PICTURES"), 4
	if dir == "" {
		dir = t.TempDir()
	} else {
		frames = 80
	}
	site := browser.Serve(t, shop)
	for _, theme := range []browser.Theme{browser.Light, browser.Dark} {
		path := filepath.Join(dir, fmt.Sprintf("playground-animated-%s.gif", theme))
		var gif bytes.Buffer
		if err := animate(t, site, theme, frames).Encode(&gif); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, gif.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		const largest = 1e6
		if gif.Len() > largest {
			t.Errorf("%s has %d bytes, more than %.0f", path, gif.Len(), largest)
		}
	}
}

// manualClock replaces the clock of a page. tick(ms) advances the player and moveAnimations(ms) the CSS animations, so
// frames do not depend on the speed of the machine.
const manualClock = `(() => {
	let now = 0, queue = [];
	performance.now = () => now;
	window.requestAnimationFrame = (f) => queue.push(f);
	window.cancelAnimationFrame = (n) => { queue[n - 1] = () => {}; };
	window.tick = (ms) => {
		now += ms;
		const due = queue;
		queue = [];
		for (const f of due) f(now);
	};
	window.moveAnimations = (ms) => {
		for (const a of document.getAnimations()) {
			a.pause();
			const end = a.effect.getComputedTiming().endTime, to = (a.currentTime ?? 0) + ms;
			if (to >= end) a.finish();
			else a.currentTime = to;
		}
	};
})()`

// animated is the query of the animated picture: two limits of 4 requests per second on the same traffic.
const animated = "?lane=token_bucket,4/1s,name=Token+bucket,capacity=12&lane=fixed_window,16/4s,name=Fixed+window" +
	"&phase=burst,count=14,seconds=2.5&phase=steady,rate=7,seconds=3.5&phase=pause,seconds=2&phase=poisson,rate=8,seed=3,seconds=4"

// animate films the playground as it plays that from the beginning to the end.
func animate(t *testing.T, site *browser.Site, theme browser.Theme, frames int) *browser.Film {
	const (
		seconds = 12.0 // virtual time
		delay   = 7    // hundredths of a second that a frame is shown
	)
	page := openPlayground(t, site, browser.Moving, theme, animated)
	browser.Eval[any](page, `(() => {
		const sheet = new CSSStyleSheet();
		sheet.replaceSync('.play-more, .play-words, .play-form, .play-edit, .play-away, .play-pace, .play-bar .row { display: none !important } ' +
			'.play-comes { visibility: hidden; height: 20px }');
		document.adoptedStyleSheets.push(sheet);
	})()`)
	film := page.Film(".play-bar", ".play-lane-b")
	browser.Eval[any](page, manualClock)
	page.Click("button", "Play")
	for frame := range frames {
		// The player never advances by more than 100 ms at once.
		const ticks = 2
		for range ticks {
			browser.Eval[any](page, fmt.Sprintf("tick(%g)", seconds*1000/float64(frames*ticks)))
		}
		browser.Eval[any](page, fmt.Sprintf("moveAnimations(%d)", delay*10))
		if frame == frames-1 {
			film.Shoot(200)
		} else {
			film.Shoot(delay)
		}
	}
	return film
}

// shopping asks for what the customers of a shop ask in a second. Some of them ask for too
// much, and now and then everybody does.
func shopping(site *browser.Site, second int) {
	for user := range 12 {
		asks := 3 + (user*7+second*5)%9
		if user < 3 || second%25 > 20 {
			asks += 18
		}
		who := fmt.Sprintf("user-%d", 100+user*37)
		address := fmt.Sprintf("192.0.2.%d", 1+user)
		site.Take(asks, browser.Attributes{"header:x-user": who, "path": "/search", "method": "GET", "ip:address": address})
		site.Take(1+user%2, browser.Attributes{"header:x-user": who, "path": "/checkout", "method": "POST", "ip:address": address})
		site.Take(4, browser.Attributes{"header:x-user": who, "path": "/", "method": "GET", "ip:address": address})
		site.Take(2, browser.Attributes{"path": "/health", "method": "HEAD", "ip:address": address})
	}
}
