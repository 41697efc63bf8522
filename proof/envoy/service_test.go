// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

func TestMain(m *testing.M) { meted.Main(m) }

const programsConfig = `
domain: shop
descriptors:
- key: user
  rate_limit: {unit: year, requests_per_unit: 2}
- key: load
  rate_limit: {unit: year, requests_per_unit: 1000000}
`

// ourProgram returns the path of mete under the name of the original's program.
func ourProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "ratelimit")
	if err := os.Symlink(meted.Program(t), program); err != nil {
		t.Fatal(err)
	}
	return program
}

// A service is a process of the original's program, or of mete's in its place.
type service struct {
	process *proctest.Process
	addr    string // of gRPC
}

// startService starts a program with programsConfig and a Redis of its own. The original and mete get the same settings.
// The argument settings replaces some of them.
func startService(t *testing.T, program string, settings ...string) *service {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "ratelimit", "config")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "shop.yaml"), []byte(programsConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "RUNTIME_ROOT="+root, "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_WATCH_ROOT=false",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+proctest.StartRedis(t).Addr, "REDIS_TIMEOUT=1m", "USE_STATSD=false")
	s := &service{}
	for _, prefix := range []string{"", "GRPC_", "DEBUG_"} {
		addr := proctest.FreeAddr(t)
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, prefix+"HOST="+host, prefix+"PORT="+port)
		if prefix == "GRPC_" {
			s.addr = addr
		}
	}
	cmd.Env = append(cmd.Env, settings...)
	s.process = proctest.Start(t, cmd)
	t.Cleanup(s.process.Kill)
	s.process.WaitReady(time.Minute, proctest.TCP(s.addr))
	return s
}

// client returns a client of the service.
func (s *service) client(t *testing.T) ratelimitv3.RateLimitServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(s.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return ratelimitv3.NewRateLimitServiceClient(conn)
}

// compactJSON returns a value without spaces, which protojson adds in some programs and not in others. No value is null.
func compactJSON(t *testing.T, v *structpb.Value) string {
	t.Helper()
	if v == nil {
		return "null"
	}
	text, err := protojson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		t.Fatal(err)
	}
	return compact.String()
}
