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

// requests are asked of both, in the same order.
const requests = 3000

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
// descriptors, and expects equal answers. The limits are per day or longer: if a day ends
// between two answers, the test starts over with empty stores.
func TestRatelimit(t *testing.T) {
	original := buildOriginal(t)
	for {
		day := today()
		differ := compare(t, original)
		if today() != day {
			continue
		}
		for _, d := range differ {
			t.Error(d)
		}
		return
	}
}

func today() int64 { return time.Now().Unix() / (24 * 60 * 60) }

// compare returns the differences.
func compare(t *testing.T, original string) []string {
	client := startOriginal(t, original, read(t, "envoy.in.yaml"))
	dir := t.TempDir()
	write(t, filepath.Join(dir, "policy.yaml"), read(t, "envoy.out.yaml"))
	mete := meted.Start(t, "policy: policy.yaml\n", dir)

	var differ []string
	var allowed, denied int
	r := rand.New(rand.NewPCG(1, 2))
	for i := range requests {
		var descriptor []entry
		for _, key := range shapes[r.IntN(len(shapes))] {
			values := vocabulary[key]
			descriptor = append(descriptor, entry{key, values[r.IntN(len(values))]})
		}
		want, got := askOriginal(t, client, descriptor), askMete(t, mete, descriptor)
		if want != got {
			differ = append(differ, fmt.Sprintf("request %d, descriptor %v: envoyproxy/ratelimit allows %v, mete %v", i, descriptor, want, got))
		}
		if want {
			allowed++
		} else {
			denied++
		}
	}
	if allowed < requests/10 || denied < requests/10 {
		t.Errorf("%d requests allowed and %d denied: one answer is too rare to compare", allowed, denied)
	}
	return differ
}

// read returns a file in the test data of mete convert, whose tests keep the policy equal to
// the converted configuration.
func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(meted.Root(t), "cmd", "internal", "convert", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
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
	cmd.Dir = filepath.Join(meted.Root(t), "proof", "envoy", "testdata", "ratelimit")
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

func askOriginal(t *testing.T, client service.RateLimitServiceClient, descriptor []entry) bool {
	t.Helper()
	resp, err := client.ShouldRateLimit(t.Context(), request(descriptor))
	if err != nil {
		t.Fatal(err)
	}
	return resp.OverallCode == service.RateLimitResponse_OK
}

func askMete(t *testing.T, s *meted.Server, descriptor []entry) bool {
	t.Helper()
	attributes := map[string]string{"envoy:domain": "shop"}
	for _, e := range descriptor {
		attributes["descriptor:"+e.key] = e.value
	}
	body, err := json.Marshal(map[string]any{"attributes": attributes})
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
