// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/metehq/mete/envoyapi/dropin"
	"github.com/metehq/mete/internal/proctest"
)

// sourceVar is the environment variable with a clone of envoyproxy/ratelimit. The tests then run it instead of the
// version of the module, which is the newest one that the Go module proxy has.
const sourceVar = "METE_TEST_RATELIMIT_SOURCE"

// newestOriginal reports whether the tests run a clone. It must have the features of March 2026 and later: quotas that
// deny if all of them are exceeded, wildcards inside of values, and metadata.
func newestOriginal() bool { return os.Getenv(sourceVar) != "" }

// An original is a process with the service of envoyproxy/ratelimit and a clock that each call sets.
type original struct {
	redis   *proctest.Redis
	client  ratelimitv3.RateLimitServiceClient
	control string
}

// buildOriginal compiles a package of the module original, such as ".". It returns the path of the program.
func buildOriginal(t testing.TB, pkg string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	options := []string{"build", "-buildvcs=false", "-trimpath", "-o", program}
	if source := os.Getenv(sourceVar); source != "" {
		options = append(options, "-modfile="+replaceOriginal(t, source))
	}
	runGo(t, "original", append(options, pkg)...)
	return program
}

// replaceOriginal returns a go.mod file with the clone in place of the released module.
func replaceOriginal(t testing.TB, source string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "go.mod")
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("original", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runGo(t, "original", "mod", "edit", "-replace=github.com/envoyproxy/ratelimit="+source, file)
	runGo(t, "original", "mod", "tidy", "-modfile="+file)
	return file
}

// runGo runs the go command in a directory without the workspace.
func runGo(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %q in %s: %v\n%s", args, dir, err, output)
	}
}

// startOriginal starts the program with settings such as "SHADOW_MODE=true".
func startOriginal(t testing.TB, program string, settings ...string) *original {
	t.Helper()
	redis := proctest.StartRedis(t)
	grpcAddr, control := proctest.FreeAddr(t), proctest.FreeAddr(t)
	cmd := exec.Command(program, "-redis", redis.Addr, "-grpc", grpcAddr, "-control", control)
	cmd.Env = append(os.Environ(), settings...)
	process := proctest.Start(t, cmd)
	t.Cleanup(process.Kill) // it has no state, and waits long for its connections

	conn, err := grpc.NewClient(grpcAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	o := &original{redis: redis, client: ratelimitv3.NewRateLimitServiceClient(conn), control: "http://" + control}
	process.WaitReady(time.Minute, func(context.Context) error {
		_, err := o.counters()
		return err
	})
	return o
}

// load replaces the configuration. It returns the error that the original has for the files.
func (o *original) load(files ...dropin.File) error {
	type file struct{ Name, Text string }
	body := struct{ Files []file }{}
	for _, f := range files {
		body.Files = append(body.Files, file{f.Name, string(f.Data)})
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	resp, err := http.Post(o.control+"/load", "application/json", bytes.NewReader(text))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	message, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", bytes.TrimSpace(message))
	}
	return err
}

// answer decides a request at a time.
func (o *original) answer(at time.Time, req *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	ctx := metadata.AppendToOutgoingContext(context.Background(), "unix-time", strconv.FormatInt(at.Unix(), 10))
	return o.client.ShouldRateLimit(ctx, req)
}

// counters returns the statistics since the start.
func (o *original) counters() (map[string]uint64, error) {
	resp, err := http.Get(o.control + "/counters")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var counters map[string]uint64
	return counters, json.NewDecoder(resp.Body).Decode(&counters)
}

// clear removes all counted hits.
func (o *original) clear() error {
	_, err := o.redis.Do("FLUSHALL")
	return err
}
