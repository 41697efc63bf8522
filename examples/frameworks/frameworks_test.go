// SPDX-License-Identifier: Apache-2.0

package frameworks

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v3"
)

// Every server admits a burst of 20 and then denies, with a Retry-After.
func TestFrameworks(t *testing.T) {
	gin.SetMode(gin.TestMode)
	for name, url := range map[string]string{
		"chi":   serve(t, newChi()),
		"echo":  serve(t, newEcho()),
		"gin":   serve(t, newGin()),
		"fiber": serveFiber(t, newFiber()),
	} {
		for i := range 20 {
			res, body := get(t, url)
			if res.StatusCode != http.StatusOK || body != "hello" || res.Header.Get("RateLimit") == "" || res.Header.Get("RateLimit-Policy") != `"per-address";q=20;w=12` {
				t.Errorf("%s, request %d: got %d, %q with %v, want 200 with RateLimit fields", name, i, res.StatusCode, body, res.Header)
			}
		}
		// A token comes back every 600 ms.
		for i := range 1000 {
			res, body := get(t, url)
			if res.StatusCode == http.StatusOK && i < 999 {
				continue
			}
			h := res.Header
			if res.StatusCode != http.StatusTooManyRequests || h.Get("Retry-After") == "" || h.Get("RateLimit") == "" || h.Get("Content-Type") != "application/problem+json" || body == "hello" {
				t.Errorf("%s: got %d, %q with %v, want 429 with Retry-After and RateLimit fields", name, res.StatusCode, body, h)
			}
			break
		}
	}
}

// serve starts a server and returns its URL.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// serveFiber starts a fiber app, which has its own server.
func serveFiber(t *testing.T, app *fiber.App) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := app.Shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

// get returns a response and its body.
func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}
