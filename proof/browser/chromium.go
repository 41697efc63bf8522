// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/metehq/mete/proof/meted"
)

// programs are the names of Chromium, the best first. The headless shell opens a tab in a fraction of the time.
var programs = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

var chromium struct {
	once sync.Once
	ctx  context.Context // of chromedp; the parent of the tabs
	stop func()
	err  error
}

// Main runs the tests of a package, then ends the browser and removes the built program. Call it in TestMain.
func Main(m *testing.M) {
	code := m.Run()
	if chromium.stop != nil {
		chromium.stop()
	}
	meted.Clean()
	os.Exit(code)
}

// runningChromium returns the context of the browser, and starts it on the first call. The browser ends with
// [Main], or with the test process, which holds the other end of its pipe.
func runningChromium(t testing.TB) context.Context {
	t.Helper()
	chromium.once.Do(func() { chromium.err = startChromium() })
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	return chromium.ctx
}

func startChromium() error {
	program, err := findChromium()
	if err != nil {
		return err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.DisableGPU,
		// Without spare renderers, a tab starts one process instead of two.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,SpareRendererForSitePerProcess"),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("no-proxy-server", true),
		// No request may leave this machine: other host names do not resolve.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
		chromedp.Flag("lang", "en-GB"),
		chromedp.WindowSize(Desktop.width, Desktop.height),
		chromedp.Env("TZ=UTC"),
	)
	allocator, free := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	stop := func() {
		cancel()
		free()
	}
	if err := chromedp.Do(ctx); err != nil {
		stop()
		return fmt.Errorf("start %s: %w", program, err)
	}
	chromium.ctx, chromium.stop = ctx, stop
	return nil
}

func findChromium() (string, error) {
	if path := os.Getenv("METE_CHROMIUM"); path != "" {
		return path, nil
	}
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Chromium found: run make setup, or apt-get install chromium-headless-shell, or name one in METE_CHROMIUM")
}
