// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
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
		played := playing(t, site, browser.Picture, theme, "?preset=burst-and-recover")
		played.PictureOf(filepath.Join(dir, fmt.Sprintf("playground-%s.png", theme)), "#main .page", ".play-lane")
	}
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
