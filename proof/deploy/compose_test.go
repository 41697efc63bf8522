// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

// composeFiles are the files of each documented command.
var composeFiles = map[string][]string{
	"api":     {"compose.yaml"},
	"gateway": {"compose.yaml", "gateway.yaml"},
}

// loadCompose loads files of examples/deploy/compose as docker compose does. Unknown
// fields are errors.
func loadCompose(t *testing.T, env []string, files ...string) (*types.Project, error) {
	t.Helper()
	var paths []string
	for _, f := range files {
		paths = append(paths, example(t, "compose", f))
	}
	options, err := cli.NewProjectOptions(paths, cli.WithEnv(env), cli.WithInterpolation(true), cli.WithResolvedPaths(true), cli.WithConsistency(true))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

func eachProject(t *testing.T, check func(*testing.T, *types.Project)) {
	for name, files := range composeFiles {
		t.Run(name, func(t *testing.T) {
			p, err := loadCompose(t, []string{"METE_ADMIN_TOKEN=" + adminToken}, files...)
			if err != nil {
				t.Fatal(err)
			}
			check(t, p)
		})
	}
}

func TestCompose_NeedsToken(t *testing.T) {
	if _, err := loadCompose(t, nil, "compose.yaml"); err == nil || !strings.Contains(err.Error(), "openssl rand") {
		t.Errorf("without METE_ADMIN_TOKEN: error %v, want one with the command that makes a token", err)
	}
}

func TestCompose_Image(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(meted.Root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	eachProject(t, func(t *testing.T, p *types.Project) {
		if image := p.Services["mete"].Image; !strings.Contains(string(readme), " "+image+"\n") {
			t.Errorf("compose.yaml runs the image %s, which README.md does not name", image)
		}
	})
}

func TestCompose_Rights(t *testing.T) {
	eachProject(t, func(t *testing.T, p *types.Project) {
		for name, s := range p.Services {
			if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.Privileged {
				t.Errorf("service %s has more rights than it needs", name)
			}
			for _, published := range s.Ports {
				if name != "mete" || published.Target == 8081 && published.HostIP != "127.0.0.1" {
					t.Errorf("service %s publishes port %d on %q", name, published.Target, published.HostIP)
				}
			}
		}
	})
}

// TestCompose_Runs runs each project without containers. Redis has the command of its
// service. mete has the command and the settings of the image, and the environment and the
// files of its service. Requests beyond the burst of the policy are denied.
func TestCompose_Runs(t *testing.T) {
	eachProject(t, func(t *testing.T, p *types.Project) {
		command := p.Services["redis"].Command
		if command[0] != "redis-server" {
			t.Fatalf("command of redis: %q", command)
		}
		redis := proctest.StartRedis(t, command[1:]...)
		if reply, err := redis.Do("CONFIG", "GET", "maxmemory-policy"); err != nil || !strings.Contains(reply, "noeviction") {
			t.Errorf("maxmemory-policy: %q, %v", reply, err)
		}
		hosts := map[string]string{"redis:6379": redis.Addr}
		if app, ok := p.Services["app"]; ok {
			if len(app.Ports) > 0 {
				t.Error("clients can reach the demo service without mete")
			}
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "served") }))
			t.Cleanup(up.Close)
			hosts["app:80"] = up.Listener.Addr().String()
		}

		root := t.TempDir()
		service := p.Services["mete"]
		write(t, filepath.Join(root, etc, "mete.yaml"), string(read(t, "docker", "mete.yaml")))
		for _, v := range service.Volumes {
			if v.Type != types.VolumeTypeBind || !v.ReadOnly {
				t.Errorf("volume %s: type %s, read only %v", v.Target, v.Type, v.ReadOnly)
			}
			if err := os.CopyFS(filepath.Join(root, v.Target), os.DirFS(v.Source)); err != nil {
				t.Fatal(err)
			}
		}
		for name, value := range service.Environment {
			text := *value
			for host, addr := range hosts {
				text = strings.Replace(text, "//"+host, "//"+addr, 1)
			}
			t.Setenv(name, strings.Replace(text, etc, filepath.Join(root, etc), 1))
		}
		s := meted.Run(t, t.TempDir(), "--config", filepath.Join(root, etc, "mete.yaml"))

		if status := get(t, s.AdminURL+"/readyz", ""); status != http.StatusOK {
			t.Errorf("/readyz: status %d", status)
		}
		const burst, most = 10, 1000
		take := func() bool { return isAllowed(t, s.URL) }
		if _, ok := p.Services["app"]; ok {
			take = func() bool { return get(t, s.URL+"/", "") == http.StatusOK }
		}
		allowed := 0
		for take() && allowed < most {
			allowed++
		}
		if allowed < burst || allowed == most {
			t.Errorf("%d requests allowed before the first denial, want at least the burst of %d", allowed, burst)
		}
		if keys, err := redis.Do("DBSIZE"); err != nil || keys == "0" {
			t.Errorf("Redis has %s keys (%v), want the bucket in it", keys, err)
		}
		if err := s.Process.Stop(); err != nil {
			t.Errorf("mete ended with %v", err)
		}
	})
}

// isAllowed asks the API for one client's request.
func isAllowed(t *testing.T, url string) bool {
	t.Helper()
	resp, err := http.Post(url+"/v1/take", "application/json", strings.NewReader(`{"attributes": {"ip:address": "192.0.2.1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var decision struct{ Allowed bool }
	if err := json.NewDecoder(resp.Body).Decode(&decision); err != nil {
		t.Fatal(err)
	}
	return decision.Allowed
}
