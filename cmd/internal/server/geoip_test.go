// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/server"
)

const torAndRobots = `rules:
  - { name: tor, limit_keys: [], match: { "ip:tor": true }, algorithm_config: { rate: 1/1d, burst: 1 } }
  - { name: robots, limit_keys: [], group: robots, match: { "ua:bot": true }, algorithm_config: { rate: 1/1d, burst: 1 } }
`

// The gateway and the API decide by facts that follow from the address and the user agent.
func TestGeoIP(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	exits := filepath.Join(t.TempDir(), "exits.txt")
	write(t, exits, "127.0.0.1\n192.0.2.7\n")
	c := testConfig()
	c.Policy, c.GeoIP = policyFile(t, torAndRobots), config.GeoIP{TorExits: exits}
	api := start(t, c)
	for _, step := range []struct {
		attributes string
		want       int
	}{
		{`"ip:address":"192.0.2.7"`, 200}, {`"ip:address":"192.0.2.7"`, 429}, {`"ip:address":"192.0.2.8"`, 200},
		{`"header:user-agent":"Googlebot/2.1"`, 200}, {`"header:user-agent":"curl/8.0"`, 429}, {`"header:user-agent":"Firefox"`, 200},
		{`"ip:tor":"false","ip:address":"192.0.2.7"`, 200}, // callers of the API are trusted with facts
	} {
		if got, answer := post(t, api.main+"/v1/take?status=429", strings.NewReader(`{"attributes":{`+step.attributes+`}}`)); got != step.want {
			t.Errorf("%s: %d %s, want %d", step.attributes, got, answer, step.want)
		}
	}
	c.Upstream = mustURL(upstream.URL)
	gateway := start(t, c)
	for i, want := range []int{http.StatusNotFound, http.StatusTooManyRequests} {
		if got, _ := get(t, gateway.main+"/"); got != want {
			t.Errorf("request %d of a Tor exit through the gateway: %d, want %d", i+1, got, want)
		}
	}
}

// A policy that needs a missing file is an error at the start, and for overrides at run time.
func TestGeoIP_Missing(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, torAndRobots)
	if _, err := server.Check(t.Context(), c); err == nil || !strings.Contains(err.Error(), "ip:tor has no data; set geoip.tor_exits to a list of addresses") {
		t.Errorf("Check: %v, want an error that names the setting", err)
	}
	c.GeoIP.Country = filepath.Join(t.TempDir(), "absent.mmdb")
	if _, err := server.Check(t.Context(), c); err == nil || !strings.Contains(err.Error(), "absent.mmdb: no such file or directory: download the file") {
		t.Errorf("Check: %v, want an error that names the file", err)
	}
	c = testConfig()
	c.Policy = policyFile(t, burst("5"))
	s := start(t, c)
	body := `{"id":"o","action":"block","match":{"ip:country":"XX"},"reason":"r","author":"a","expires_at":"2099-01-01T00:00:00Z"}`
	if status, answer := s.ask("PUT", "/v1/overrides", body); status != 422 || !strings.Contains(answer, "ip:country has no data") {
		t.Errorf("override on ip:country: %d %s, want 422 with the remedy", status, answer)
	}
}
