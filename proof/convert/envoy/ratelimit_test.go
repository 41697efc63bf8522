// SPDX-License-Identifier: Apache-2.0

package envoy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

func TestMain(m *testing.M) { meted.Main(m) }

const (
	requests = 3000 // of the configuration with every shape
	configs  = 15   // random ones
	few      = 200  // requests of a random configuration
)

// An entry is one of a descriptor.
type entry struct{ key, value string }

// vocabulary are keys and values of the configuration, and a value that it does not have.
var vocabulary = map[string][]string{
	"database":     {"users", "default", "orders", "carts"},
	"message_type": {"marketing", "alert"},
	"to_number":    {"2061111111", "2062222222"},
	"path":         {"/files/free", "/files/x", "/files/y", "/files/z", "/fonts/a", "/fonts/b", "/about"},
	"method":       {"GET", "PUT"},
	"plan":         {"trial", "paid", "free"},
}

// shapes are the keys of the descriptors, in the order of the configuration, and some with
// too many or too few entries.
var shapes = [][]string{
	{"database"}, {"message_type"}, {"message_type", "to_number"}, {"to_number"}, {"path"}, {"path", "method"}, {"plan"},
	{"method"}, {"database", "plan"}, {"message_type", "to_number", "plan"},
}

// TestRatelimit asks envoyproxy/ratelimit and mete with the converted policy the same
// descriptors, and expects equal answers.
func TestRatelimit(t *testing.T) {
	original := buildOriginal(t)
	config, err := os.ReadFile(filepath.Join(meted.Root(t), "cmd", "internal", "convert", "testdata", "envoy.in.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var descriptors [][]entry
	for range requests {
		descriptors = append(descriptors, draw(r, shapes[r.IntN(len(shapes))], vocabulary))
	}
	allowed := compareToday(t, original, config, descriptors)
	if allowed < requests/10 || requests-allowed < requests/10 {
		t.Errorf("%d of %d requests allowed: one answer is too rare to compare", allowed, requests)
	}
}

// TestRatelimit_Random compares random configurations.
func TestRatelimit_Random(t *testing.T) {
	original := buildOriginal(t)
	for seed := range uint64(configs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			config := randomConfig(r)
			var descriptors [][]entry
			for range few {
				var keys []string
				for _, key := range []string{"a", "b", "c"} { // in the order of the configuration
					if r.IntN(2) == 0 {
						keys = append(keys, key)
					}
				}
				if keys == nil {
					keys = []string{"a"}
				}
				descriptors = append(descriptors, draw(r, keys, map[string][]string{"a": randomValues, "b": randomValues, "c": randomValues}))
			}
			compareToday(t, original, config, descriptors)
			if t.Failed() {
				t.Logf("%s", config)
			}
		})
	}
}

// TestRatelimit_Hits proves a difference of the list: the original counts denied hits.
func TestRatelimit_Hits(t *testing.T) {
	config := []byte("domain: shop\ndescriptors: [{key: a, rate_limit: {unit: year, requests_per_unit: 3}}]\n")
	client, mete, policy := start(t, buildOriginal(t), config)
	for i, tt := range []struct {
		hits           uint32
		original, mete bool
	}{{2, true, true}, {2, false, false}, {1, false, true}} {
		descriptor := []entry{{"a", "x"}}
		if got := askOriginal(t, client, descriptor, tt.hits); got != tt.original {
			t.Errorf("request %d: envoyproxy/ratelimit allows %v, want %v", i, got, tt.original)
		}
		if got := askMete(t, mete, descriptor, tt.hits); got != tt.mete {
			t.Errorf("request %d: mete allows %v, want %v", i, got, tt.mete)
		}
	}
	if !strings.Contains(policy, "hits_addend") {
		t.Errorf("the list of differences has no hits_addend:\n%s", policy)
	}
}

// draw returns a descriptor with these keys and random values.
func draw(r *rand.Rand, keys []string, values map[string][]string) []entry {
	var descriptor []entry
	for _, key := range keys {
		descriptor = append(descriptor, entry{key, values[key][r.IntN(len(values[key]))]})
	}
	return descriptor
}

// compareToday compares the answers, and returns how many requests the original allows.
// The limits are per day or longer: if a day ends between two answers, it starts over with
// empty stores.
func compareToday(t *testing.T, original string, config []byte, descriptors [][]entry) int {
	t.Helper()
	today := func() int64 { return time.Now().Unix() / (24 * 60 * 60) }
	for {
		day := today()
		allowed, differ := compare(t, original, config, descriptors)
		if today() != day {
			continue
		}
		for _, d := range differ {
			t.Error(d)
		}
		return allowed
	}
}

// compare returns how many requests the original allows, and the differences.
func compare(t *testing.T, original string, config []byte, descriptors [][]entry) (allowed int, differ []string) {
	t.Helper()
	client, mete, _ := start(t, original, config)
	for i, descriptor := range descriptors {
		want, got := askOriginal(t, client, descriptor, 1), askMete(t, mete, descriptor, 1)
		if want != got {
			differ = append(differ, fmt.Sprintf("request %d, descriptor %v: envoyproxy/ratelimit allows %v, mete %v", i, descriptor, want, got))
		}
		if want {
			allowed++
		}
	}
	return allowed, differ
}

// start starts the original with a configuration, and mete with the policy that it becomes.
func start(t *testing.T, original string, config []byte) (service.RateLimitServiceClient, *meted.Server, string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.yaml"), config)
	convert := exec.Command(meted.Program(t), "convert", "--from", "envoy", "--output", "policy.yaml", "config.yaml")
	convert.Dir = dir
	if output, err := convert.CombinedOutput(); err != nil {
		t.Fatalf("mete convert: %v\n%s", err, output)
	}
	policy, err := os.ReadFile(filepath.Join(dir, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return startOriginal(t, original, config), meted.Start(t, "policy: policy.yaml\n", dir), string(policy)
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// buildOriginal builds the service of envoyproxy/ratelimit.
func buildOriginal(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ratelimit")
	cmd := exec.Command("go", "build", "-o", path, "github.com/envoyproxy/ratelimit/src/service_cmd")
	cmd.Dir = filepath.Join(meted.Root(t), "proof", "convert", "envoy", "testdata", "ratelimit")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return path
}

// startOriginal starts the service with a configuration and a Redis of its own.
func startOriginal(t *testing.T, program string, config []byte) service.RateLimitServiceClient {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "config", "shop.yaml"), config)
	redis := proctest.StartRedis(t)
	address := proctest.FreeAddr(t)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "RUNTIME_ROOT="+root, "RUNTIME_SUBDIRECTORY=.", "RUNTIME_WATCH_ROOT=false",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+redis.Addr, "USE_STATSD=false", "DISABLE_STATS=true")
	for name, addr := range map[string]string{"GRPC": address, "": proctest.FreeAddr(t), "DEBUG": proctest.FreeAddr(t)} {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		prefix := strings.TrimPrefix(name+"_", "_")
		cmd.Env = append(cmd.Env, prefix+"HOST="+host, prefix+"PORT="+port)
	}
	process := proctest.Start(t, cmd)

	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	client := service.NewRateLimitServiceClient(conn)
	process.WaitReady(meted.Patience, func(ctx context.Context) error {
		_, err := client.ShouldRateLimit(ctx, request([]entry{{"unknown", "key"}}))
		return err
	})
	return client
}

func request(descriptor []entry) *service.RateLimitRequest {
	d := new(ratelimit.RateLimitDescriptor)
	for _, e := range descriptor {
		d.Entries = append(d.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: e.key, Value: e.value})
	}
	return &service.RateLimitRequest{Domain: "shop", Descriptors: []*ratelimit.RateLimitDescriptor{d}}
}

func askOriginal(t *testing.T, client service.RateLimitServiceClient, descriptor []entry, hits uint32) bool {
	t.Helper()
	r := request(descriptor)
	r.HitsAddend = hits
	resp, err := client.ShouldRateLimit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return resp.OverallCode == service.RateLimitResponse_OK
}

func askMete(t *testing.T, s *meted.Server, descriptor []entry, hits uint32) bool {
	t.Helper()
	attributes := map[string]string{"envoy:domain": "shop"}
	for _, e := range descriptor {
		attributes["descriptor:"+e.key] = e.value
	}
	body, err := json.Marshal(map[string]any{"attributes": attributes, "cost": hits})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(s.URL+"/v1/take", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var decision struct{ Allowed *bool }
	if err := json.NewDecoder(resp.Body).Decode(&decision); err != nil || decision.Allowed == nil {
		t.Fatalf("/v1/take: status %s, %v", resp.Status, err)
	}
	return *decision.Allowed
}
