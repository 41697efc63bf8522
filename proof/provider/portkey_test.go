// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
	"github.com/metehq/mete/proof/provider"
)

// startPortkey runs the AI gateway of Portkey, which forwards each request to the host that a header field names. Its package.json
// pins an older HTTP server: with the newest one, the gateway answers streams with an error.
func startPortkey(t *testing.T) (url string) {
	t.Helper()
	addr := proctest.FreeAddr(t)
	_, port, _ := strings.Cut(addr, ":")
	program, err := filepath.Abs("portkey/node_modules/@portkey-ai/gateway/build/start-server.js")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(proctest.Find(t, "node", "nodejs"), program, "--headless", "--port="+port)
	proctest.Start(t, cmd).WaitReady(meted.Patience, proctest.HTTP("http://"+addr+"/"))
	return "http://" + addr
}

// Behind another gateway and in front of it, mete charges the tokens that the provider reports. The answers are JSON and streams,
// in the formats of two providers.
func TestPortkey(t *testing.T) {
	portkey := startPortkey(t)
	for position, begin := range map[string]func(t *testing.T) (g *gateway, entry, target string){
		"behind": func(t *testing.T) (*gateway, string, string) {
			g := start(t, "rules:"+each)
			return g, portkey, g.URL
		},
		"in front": func(t *testing.T) (*gateway, string, string) {
			g := startBefore(t, portkey, "rules:"+each)
			return g, g.URL, g.sim.URL
		},
	} {
		if testing.Short() && position == "behind" { // mete waits for the connections of the other gateway at its end
			continue
		}
		t.Run(position, func(t *testing.T) {
			g, entry, target := begin(t)
			for _, tt := range []struct {
				wire     wire
				provider string
			}{{wires[0], "openai"}, {wires[1], "openai"}, {wires[3], "anthropic"}} {
				for _, stream := range []bool{false, true} {
					q := &question{wire: tt.wire, stream: stream, asks: stream && tt.provider == "openai", prompt: 10, most: 100, Plan: provider.Plan{ID: tt.wire.name, Reasoning: 7}}
					if stream {
						q.ID += "-stream"
					}
					q.header = http.Header{
						"X-Portkey-Provider": {tt.provider}, "X-Portkey-Custom-Host": {target + "/v1"},
						"X-Portkey-Forward-Headers": {"x-case,x-team," + strings.ToLower(provider.PlanHeader)}, "Authorization": {"Bearer sk-1"},
					}
					res, body := g.askAt(entry, q)
					if record := g.sim.Record(q.ID); res.StatusCode != http.StatusOK || !record.Done || strings.Count(body, provider.Word) < 20 {
						t.Errorf("%s: %d %s, record %+v", q.ID, res.StatusCode, body, record)
					}
					g.wantCharge(q.ID, 37)
				}
			}
		})
	}
}
