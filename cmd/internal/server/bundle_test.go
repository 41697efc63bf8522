// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/internal/testkit"
)

// A bundleHost is a web server with one signed bundle.
type bundleHost struct {
	*httptest.Server
	key signer

	mu   sync.Mutex
	text string
	down bool
}

func newBundleHost(t *testing.T) *bundleHost {
	t.Helper()
	h := &bundleHost{key: newSigner(t)}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		switch user, password, _ := r.BasicAuth(); {
		case h.down:
			w.WriteHeader(http.StatusBadGateway)
		case user != "fleet" || password != "canary":
			w.WriteHeader(http.StatusForbidden)
		case strings.HasSuffix(r.URL.Path, policysign.Suffix):
			_, _ = w.Write(policysign.Sign(h.key.private, []byte(h.text)))
		default:
			tag := fmt.Sprintf(`"%d"`, len(h.text))
			if w.Header().Set("ETag", tag); r.Header.Get("If-None-Match") == tag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			_, _ = w.Write([]byte(h.text))
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *bundleHost) put(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text, h.down = text, false
}

func (h *bundleHost) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = true
}

// config returns the settings of a server that follows the host.
func (h *bundleHost) config(t *testing.T) config.Config {
	t.Helper()
	c := withTokens()
	dir := t.TempDir()
	c.PolicyCA, c.StateDirectory, c.PolicyKeys = filepath.Join(dir, "ca.pem"), dir, []string{h.key.public}
	write(t, c.PolicyCA, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})))
	c.PolicyBundle = mustURL(strings.Replace(h.URL, "https://", "https://fleet:canary@", 1) + "/policy.yaml")
	return c
}

// bundled returns the rules of burst as a bundle.
func bundled(version int, tokens string) string {
	return fmt.Sprintf("bundle_version: %d\npolicies:\n  - id: main\n    spec:\n      %s\n", version, strings.ReplaceAll(burst(tokens), "\n", "\n      "))
}

// readyBundle returns the bundle that /readyz shows.
func (r *running) readyBundle() api.Bundle {
	r.t.Helper()
	var x struct {
		Status string
		Bundle api.Bundle
	}
	_, text := get(r.t, r.main+"/readyz")
	if err := json.Unmarshal([]byte(text), &x); err != nil || x.Status != "ok" {
		r.t.Fatalf("/readyz: %s, %v", text, err)
	}
	return x.Bundle
}

// streamedState returns the first state in /v1/traffic/stream that is wanted.
func (r *running) streamedState(wanted func(*api.TrafficState) bool) (state api.TrafficState) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), "GET", r.admin+"/v1/traffic/stream", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+readerToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for event := ""; lines.Scan(); {
		name, data, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "event":
			event = data
		case name == "data" && event == "state":
			if err := json.Unmarshal([]byte(data), &state); err != nil {
				r.t.Fatal(err)
			}
			if wanted(&state) {
				return state
			}
		}
	}
	r.t.Fatalf("the stream ended without a state: %v", lines.Err())
	return state
}

// Two servers follow one source. A restart while the source is down keeps the last good bundle.
func TestBundle(t *testing.T) {
	t.Parallel()
	h := newBundleHost(t)
	h.put(bundled(1, "1"))
	c := h.config(t)
	a, b := start(t, c), start(t, func() config.Config { c := c; c.StateDirectory = t.TempDir(); return c }())
	if got := a.readyBundle(); got.Version != 1 || len(got.Digest) != 12 || got.FromDisk {
		t.Errorf("/readyz shows %+v", got)
	}
	h.put(bundled(2, "20"))
	for _, s := range []*running{a, b} {
		testkit.Until(t, "the new bundle is active", func() bool { return s.server.Policy().Version() == 2 })
	}
	h.put(bundled(1, "1") + "# older\n")
	testkit.Until(t, "the older bundle is refused", func() bool { return a.log.Count("policy bundle rejected") == 1 })
	for _, line := range []string{
		`mete_policy_version 2`, `mete_policy_bundle_info{digest="` + a.readyBundle().Digest + `"} 1`, `mete_policy_bundle_polls_total{result="applied"} 2`,
		`mete_policy_bundle_polls_total{result="refused"} 1`, `mete_policy_bundle_from_disk 0`, `mete_policy_bundle_age_seconds `, `mete_policy_reload_failing 1`,
	} {
		if _, text := a.as(readerToken, "GET", "/metrics", ""); !strings.Contains(text, line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	if p := a.streamedState(func(s *api.TrafficState) bool { return s.Policy.Failing }).Policy; p.Bundle == nil || p.Bundle.Version != 2 || p.Source != h.URL+"/policy.yaml" {
		t.Errorf("/v1/traffic/stream shows the policy %+v", p)
	}
	if status, text := a.as(ownerToken, "POST", "/v1/reload", ""); status != http.StatusUnprocessableEntity || !strings.Contains(text, "it is 1, and 2 is active") {
		t.Errorf("reload of an older bundle: %d %s", status, text)
	}
	h.stop()
	a.end()
	a = start(t, c)
	if got := a.readyBundle(); got.Version != 2 || !got.FromDisk {
		t.Errorf("after a restart without the source, /readyz shows %+v", got)
	}
	h.put(bundled(3, "5"))
	testkit.Until(t, "the source is followed again", func() bool { return a.readyBundle().Version == 3 })
	for _, s := range []*running{a, b} {
		if strings.Contains(s.log.String(), "canary") {
			t.Errorf("the log has the password:\n%s", s.log)
		}
	}
}

// Without the source and without a bundle on disk there is no start, and no password in the error.
func TestBundle_NoStart(t *testing.T) {
	t.Parallel()
	h := newBundleHost(t)
	h.stop()
	s, err := server.New(t.Context(), h.config(t), slog.New(slog.DiscardHandler))
	if err == nil {
		s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "/policy.yaml: status 502") || strings.Contains(err.Error(), "canary") {
		t.Errorf("%v, want the status of the source", err)
	}
}
