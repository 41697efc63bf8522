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

// programs are the names under which systems have Chromium, the best first: the shell has
// no windows, and opens a tab in a fraction of the time.
var programs = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// chromium is the one of a run of tests.
var chromium struct {
	once sync.Once
	ctx  context.Context // of chromedp; its tabs' parent
	stop func()
	err  error
}

// Main is what a package's TestMain calls: it runs the tests, and ends the browser
// and removes the program that they were made with.
func Main(m *testing.M) {
	code := m.Run()
	if chromium.stop != nil {
		chromium.stop()
	}
	meted.Clean()
	os.Exit(code)
}

// runningChromium returns the context of the browser, which is started once in a run of
// tests. It ends with [Main], or with the process of the tests, which is the only one
// that holds the other end of its pipe.
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
		// No renderer is kept ready for a next page: each tab would start two.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,SpareRendererForSitePerProcess"),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("no-proxy-server", true),
		// Who asks anybody but this machine is told that there is nobody.
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
