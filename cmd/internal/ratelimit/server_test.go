// SPDX-License-Identifier: Apache-2.0

package ratelimit_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/metehq/mete/cmd/internal/ratelimit"
	"github.com/metehq/mete/internal/proctest"
)

func TestServer_Doors(t *testing.T) {
	root, _ := directory(t, basic)
	r := start(t, "RUNTIME_ROOT="+root)
	client := dial(t, r.GRPC.String(), nil)
	for i, want := range []any{ok, ok, over} {
		if got := call(t, client, "/a"); got != want {
			t.Errorf("call %d: %v, want %v", i+1, got, want)
		}
	}
	web := "http://" + r.HTTP.String()
	for _, c := range []struct {
		body   string
		status int
	}{
		{`{"domain":"shop","descriptors":[{"entries":[{"key":"path","value":"/b"}]}],"hits_addend":2}`, 200},
		{`{"domain":"shop","descriptors":[{"entries":[{"key":"path","value":"/b"}]}]}`, 429},
		{`{"domain":"","descriptors":[]}`, 400},
		{`{"unknown":1}`, 400},
		{`no JSON`, 400},
	} {
		response, err := http.Post(web+"/json", "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("/json %s: status %d, want %d", c.body, response.StatusCode, c.status)
		}
	}
	if status, body := get(t, web+"/healthcheck"); status != 200 || body != "OK" {
		t.Errorf("/healthcheck: %d %q", status, body)
	}
	debug := "http://" + r.Debug.String()
	if _, body := get(t, debug+"/rlconfig"); !strings.Contains(body, "shop.path") {
		t.Errorf("/rlconfig: %q", body)
	}
	if _, body := get(t, debug+"/stats"); !strings.Contains(body, "ratelimit.service.rate_limit.shop.path.over_limit: 2\n") {
		t.Errorf("/stats: %q", body)
	}
	if status, _ := get(t, debug+"/debug/pprof/"); status != 404 {
		t.Errorf("profiles without METE_DEBUG_PPROF: status %d", status)
	}
	_, page := get(t, "http://"+r.Metrics.String()+"/metrics")
	for _, want := range []string{
		`ratelimit_service_rate_limit_total_hits{domain="shop",key1="path"} 6`,
		`ratelimit_service_rate_limit_over_limit{domain="shop",key1="path"} 2`,
		`ratelimit_service_config_load_success 1`,
		`ratelimit_service_should_rate_limit_error{err_type="service_error"} 1`,
		`ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 3`,
		`ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"} 3`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
	conn, err := grpc.NewClient(r.GRPC.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, service := range []string{"", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService"} {
		health, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		if err != nil || health.Status != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", service, health, err)
		}
	}
	r.end(t)
}

func TestServer_Reload(t *testing.T) {
	t.Parallel()
	versions := t.TempDir()
	for name, text := range map[string]string{"one": basic, "two": strings.ReplaceAll(basic, "requests_per_unit: 2", "requests_per_unit: 5"), "bad": "domain: shop\ndescriptors: [{}]"} {
		if err := os.MkdirAll(filepath.Join(versions, name, "config"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(versions, name, "config", "shop.yaml"), text)
	}
	current := filepath.Join(versions, "current")
	link := func(name string) {
		t.Helper()
		next := filepath.Join(versions, "next")
		if err := os.Symlink(name, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, current); err != nil {
			t.Fatal(err)
		}
	}
	link("one")
	r := start(t, "RUNTIME_ROOT="+current)
	client := dial(t, r.GRPC.String(), nil)
	for i, want := range []any{ok, ok, over} {
		if got := call(t, client, "/a"); got != want {
			t.Errorf("call %d: %v, want %v", i+1, got, want)
		}
	}
	link("bad")
	r.log.wait(t, "old configuration stays active", 1)
	if got := call(t, client, "/b"); got != ok {
		t.Errorf("with a bad file: %v", got)
	}
	link("two")
	r.log.wait(t, "configuration loaded", 2)
	for range 4 {
		call(t, client, "/c")
	}
	if got := call(t, client, "/c"); got != ok {
		t.Errorf("fifth call after the reload: %v", got)
	}
	write(t, filepath.Join(versions, "two", "config", "shop.yaml"), basic)
	r.log.wait(t, "configuration loaded", 3)
	for range 2 {
		call(t, client, "/d")
	}
	if got := call(t, client, "/d"); got != over {
		t.Errorf("third call after the change of the file: %v", got)
	}
}

// Settings without effect in a file are in the log.
func TestServer_FileWarnings(t *testing.T) {
	t.Parallel()
	root, file := directory(t, "unit: day\n"+basic)
	r := start(t, "RUNTIME_ROOT="+root)
	want := file + `:1:1: key \"unit\" has no effect here`
	r.log.wait(t, want, 1)
	write(t, file, "name: other\nunit: day\n"+basic)
	r.log.wait(t, `key \"unit\" has no effect here`, 2)
	r.log.wait(t, `key \"name\" has no effect here`, 1)
}

func TestSettings_CheckFiles(t *testing.T) {
	for _, c := range []struct{ text, kind, warning, err string }{
		{basic, "FILE", "", ""},
		{"unit: day\n" + basic, "FILE", `key "unit" has no effect here`, ""},
		{"domain:", "FILE", "", "the domain is missing or empty"},
		{"domain:", "GRPC_XDS_SOTW", "", ""},
	} {
		root, _ := directory(t, c.text)
		s, _, err := ratelimit.ReadSettings([]string{"RUNTIME_ROOT=" + root, "CONFIG_TYPE=" + c.kind})
		if err != nil {
			t.Fatal(err)
		}
		warnings, err := s.CheckFiles()
		if got := strings.Join(warnings, "; "); !strings.Contains(got, c.warning) || (got == "") != (c.warning == "") {
			t.Errorf("%s of %s: warnings %q, want %q", c.kind, c.text, got, c.warning)
		}
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s of %s: error %v, want %q", c.kind, c.text, err, c.err)
		}
	}
	s, _, err := ratelimit.ReadSettings([]string{"RUNTIME_ROOT=/nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CheckFiles(); err == nil || !strings.Contains(err.Error(), "RUNTIME_ROOT") {
		t.Errorf("without a directory: %v", err)
	}
}

func TestServer_StartUnconfigured(t *testing.T) {
	t.Parallel()
	root, file := directory(t, "domain:")
	if _, _, err := open(t, "RUNTIME_ROOT="+root); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a bad file at the start: %v", err)
	}
	r := start(t, "RUNTIME_ROOT="+root, "FORCE_START_WITHOUT_INITIAL_CONFIG=true", "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true")
	if status, _ := get(t, "http://"+r.HTTP.String()+"/healthcheck"); status != 500 {
		t.Errorf("/healthcheck without a configuration: %d", status)
	}
	if _, err := dial(t, r.GRPC.String(), nil).ShouldRateLimit(t.Context(), requestFor("/a")); err == nil {
		t.Error("a call without a configuration has an answer")
	}
	write(t, file, basic)
	r.log.wait(t, "configuration loaded", 1)
	if status, body := get(t, "http://"+r.HTTP.String()+"/healthcheck"); status != 200 {
		t.Errorf("/healthcheck: %d %q", status, body)
	}
}

func TestServer_Redis(t *testing.T) {
	redis := proctest.StartRedis(t)
	if _, err := redis.Do("ACL", "SETUSER", "envoy", "on", ">secret", "~*", "&*", "+@all"); err != nil {
		t.Fatal(err)
	}
	root, _ := directory(t, basic)
	environ := []string{"RUNTIME_ROOT=" + root, "METE_STORE=", "REDIS_SOCKET_TYPE=tcp", "REDIS_TIMEOUT=1m", "REDIS_URL=" + redis.Addr, "REDIS_AUTH=envoy:secret", "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true"}
	one, two := start(t, environ...), start(t, environ...)
	wants := []any{ok, ok, over}
	a, b := dial(t, one.GRPC.String(), nil), dial(t, two.GRPC.String(), nil)
	got := []any{call(t, a, "/a"), call(t, b, "/a"), call(t, a, "/a")}
	for i := range got {
		if got[i] != wants[i] {
			t.Errorf("call %d: %v, want %v", i+1, got[i], wants[i])
		}
	}
	if status, body := get(t, "http://"+one.HTTP.String()+"/healthcheck"); status != 200 {
		t.Errorf("/healthcheck: %d %q", status, body)
	}
	redis.Process.Kill()
	if status, body := get(t, "http://"+one.HTTP.String()+"/healthcheck"); status != 500 {
		t.Errorf("/healthcheck without Redis: %d %q", status, body)
	}
	if _, err := a.ShouldRateLimit(t.Context(), requestFor("/a")); err == nil {
		t.Error("a call without Redis has an answer")
	}
}
