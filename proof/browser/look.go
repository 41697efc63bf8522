// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// A Size is a screen size with its input device.
type Size struct {
	name          string
	width, height int
	scale         float64
	phone         bool // with a touch screen
}

// The sizes that the pages support.
var (
	Desktop = Size{name: "desktop", width: 1280, height: 900, scale: 1}
	Phone   = Size{name: "phone", width: 390, height: 844, scale: 2, phone: true}
	Picture = Size{name: "picture", width: 1280, height: 1130, scale: 2}           // for documents
	Narrow  = Size{name: "narrow", width: 320, height: 640, scale: 2, phone: true} // 1280 at 400%
)

// A Theme is a color scheme of the system.
type Theme string

// The values of prefers-color-scheme.
const (
	Light Theme = "light"
	Dark  Theme = "dark"
)

type Look struct {
	Size  Size
	Theme Theme
}

func (l Look) String() string { return l.Size.name + " " + string(l.Theme) }

// Looks are all sizes in all themes. The first two cover each size and each theme once.
var Looks = []Look{{Desktop, Light}, {Phone, Dark}, {Desktop, Dark}, {Phone, Light}}

// Each runs a test for each size and each theme once. Faults of a theme rarely depend on the size.
func Each(t *testing.T, test func(t *testing.T, size Size, theme Theme)) {
	t.Helper()
	for _, look := range Looks[:2] {
		t.Run(look.String(), func(t *testing.T) { test(t, look.Size, look.Theme) })
	}
}

// applyLook sets the size, theme and focus of a tab.
func (p *Page) applyLook(still bool) {
	p.t.Helper()
	motion := "no-preference"
	if still {
		motion = "reduce"
	}
	p.must("set the size and the theme", func(ctx context.Context) error {
		if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: int64(p.size.width), Height: int64(p.size.height), DeviceScaleFactor: p.size.scale, Mobile: p.size.phone,
		}); err != nil {
			return err
		}
		if _, err := chromedp.Call(ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{
			Enabled: p.size.phone, MaxTouchPoints: 1,
		}); err != nil {
			return err
		}
		if _, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
			return err
		}
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: string(p.theme)},
				{Name: "prefers-reduced-motion", Value: motion},
			},
		})
		return err
	})
}

// ReduceMotion turns on the system setting for reduced motion.
func (p *Page) ReduceMotion() {
	p.t.Helper()
	p.applyLook(true)
}
