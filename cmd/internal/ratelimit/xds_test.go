// SPDX-License-Identifier: Apache-2.0

package ratelimit_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/metehq/mete/internal/proctest"
)

// A controlPlane is the xDS server of go-control-plane, over mTLS.
type controlPlane struct {
	t        *testing.T
	addr     string
	secure   *tls.Config
	cache    cachev3.SnapshotCache
	server   *grpc.Server
	requests chan *discoveryv3.DiscoveryRequest
}

func startControlPlane(t *testing.T, addr string, secure *tls.Config) *controlPlane {
	t.Helper()
	p := &controlPlane{t: t, addr: addr, secure: secure, requests: make(chan *discoveryv3.DiscoveryRequest, 100)}
	p.start()
	return p
}

func (p *controlPlane) start() {
	p.t.Helper()
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.addr = l.Addr().String()
	p.cache = cachev3.NewSnapshotCache(false, cachev3.IDHash{}, nil)
	p.server = grpc.NewServer(grpc.Creds(credentials.NewTLS(p.secure)))
	ctx, cancel := context.WithCancel(context.Background())
	p.t.Cleanup(cancel)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(p.server, serverv3.NewServer(ctx, p.cache, serverv3.CallbackFuncs{
		StreamRequestFunc: func(_ int64, r *discoveryv3.DiscoveryRequest) error {
			p.requests <- r
			return nil
		},
	}))
	server := p.server
	go server.Serve(l)
	p.t.Cleanup(server.Stop)
}

// publish sets the configuration of the node.
func (p *controlPlane) publish(version string, key string, most uint32) {
	p.t.Helper()
	snapshot, err := cachev3.NewSnapshot(version, map[resourcev3.Type][]types.Resource{resourcev3.RateLimitConfigType: {&rlsconf.RateLimitConfig{
		Name: "shop", Domain: "shop", Descriptors: []*rlsconf.RateLimitDescriptor{
			{Key: key, RateLimit: &rlsconf.RateLimitPolicy{Unit: rlsconf.RateLimitUnit_HOUR, RequestsPerUnit: most}},
		},
	}}})
	if err == nil {
		err = p.cache.SetSnapshot(p.t.Context(), "envoy-ratelimit", snapshot)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// waitAnswer waits for the ACK or NACK after a version.
func (p *controlPlane) waitAnswer(matches func(*discoveryv3.DiscoveryRequest) bool) {
	p.t.Helper()
	for end := time.After(timeout); ; {
		select {
		case r := <-p.requests:
			if r.GetResponseNonce() != "" && matches(r) {
				return
			}
		case <-end:
			p.t.Fatal("the control plane does not receive the answer")
		}
	}
}

func (p *controlPlane) waitAccepted(version string) {
	p.t.Helper()
	p.waitAnswer(func(r *discoveryv3.DiscoveryRequest) bool {
		return r.GetErrorDetail() == nil && r.GetVersionInfo() == version
	})
}

// TestServer_EnvoyGateway runs the service with the environment that Envoy Gateway 1.9.1 sets.
func TestServer_EnvoyGateway(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	client := proctest.Certify(t, cert, key)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	plane := startControlPlane(t, "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: client.RootCAs, ClientAuth: tls.RequireAndVerifyClientCert,
	})
	collector := http.NewServeMux()
	exported := make(chan string, 100)
	collector.HandleFunc("POST /v1/traces", func(_ http.ResponseWriter, r *http.Request) { exported <- r.URL.Path })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go http.Serve(l, collector)
	defer l.Close()

	r := start(t, "METE_STORE=",
		"RUNTIME_ROOT=/data", "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_IGNOREDOTFILES=true", "RUNTIME_WATCH_ROOT=false",
		"LOG_LEVEL=info", "USE_STATSD=false", "CONFIG_TYPE=GRPC_XDS_SOTW",
		"CONFIG_GRPC_XDS_SERVER_URL="+plane.addr, "CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit",
		"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT="+cert, "GRPC_SERVER_TLS_KEY="+key, "GRPC_SERVER_TLS_CA_CERT="+cert,
		"CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT="+cert, "CONFIG_GRPC_XDS_CLIENT_TLS_KEY="+key,
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT="+cert, "FORCE_START_WITHOUT_INITIAL_CONFIG=true",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+proctest.RedisAddr(t), "CACHE_KEY_PREFIX="+t.Name()+filepath.Base(dir),
		"USE_PROMETHEUS=true", "PROMETHEUS_MAPPER_YAML=/etc/statsd-exporter/conf.yaml",
		"TRACING_ENABLED=true", "TRACING_SERVICE_NAME=envoy-ratelimit", "TRACING_SERVICE_NAMESPACE=envoy-gateway-system",
		"TRACING_SERVICE_INSTANCE_ID=pod-1", "TRACING_SAMPLING_RATE=1.0", "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+l.Addr().String(),
		"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=50ms", "XDS_CLIENT_BACKOFF_MAX_INTERVAL=100ms", "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL=50ms", // shorter for the test
	)
	if status, body := get(t, "http://"+r.HTTP.String()+"/healthcheck"); status != 200 {
		t.Errorf("/healthcheck: %d %q", status, body)
	}
	plane.publish("1", "path", 2)
	plane.waitAccepted("1")
	envoy := dial(t, r.GRPC.String(), credentials.NewTLS(client))
	for i, want := range []any{ok, ok, over} {
		if got := call(t, envoy, "/a"); got != want {
			t.Errorf("call %d: %v, want %v", i+1, got, want)
		}
	}
	plane.publish("2", "", 1) // a descriptor needs a key
	plane.waitAnswer(func(r *discoveryv3.DiscoveryRequest) bool {
		return strings.Contains(r.GetErrorDetail().GetMessage(), "key") && r.GetVersionInfo() == "1"
	})
	if got := call(t, envoy, "/a"); got != over {
		t.Errorf("after a rejected configuration: %v", got)
	}
	plane.server.Stop()
	r.log.wait(t, "control plane lost", 1)
	if got := call(t, envoy, "/a"); got != over {
		t.Errorf("without a control plane: %v", got)
	}
	plane.start()
	plane.publish("1", "path", 4) // a new control plane counts from 1 again
	plane.waitAccepted("1")
	if got := call(t, envoy, "/a"); got != over {
		t.Errorf("fifth call with a limit of 4: %v", got)
	}
	if got := call(t, envoy, "/b"); got != ok {
		t.Errorf("after the return of the control plane: %v", got)
	}
	r.end(t)
	select {
	case <-exported:
	default:
		t.Error("no spans were exported at the end")
	}
}
