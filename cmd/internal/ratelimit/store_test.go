// SPDX-License-Identifier: Apache-2.0

package ratelimit_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/ratelimit"
	"github.com/metehq/mete/internal/proctest"
)

// checkShared starts two services with the settings of a store. They must share a limit of two requests.
func checkShared(t *testing.T, environ ...string) {
	t.Helper()
	root, _ := directory(t, basic)
	environ = append([]string{"RUNTIME_ROOT=" + root, "METE_STORE=", "REDIS_SOCKET_TYPE=tcp", "REDIS_TIMEOUT=1m", "CACHE_KEY_PREFIX=" + t.Name()}, environ...)
	one, two := dial(t, start(t, environ...).GRPC.String(), nil), dial(t, start(t, environ...).GRPC.String(), nil)
	for _, path := range []string{"/a", "/b", "/c"} {
		if a, b, c := call(t, one, path), call(t, two, path), call(t, one, path); a != ok || b != ok || c != over {
			t.Errorf("%s: %v, %v, %v; want OK, OK, OVER_LIMIT", path, a, b, c)
		}
	}
}

func TestStore_TLS(t *testing.T) {
	redis, client := proctest.StartRedisTLS(t, "--tls-auth-clients", "yes")
	if _, err := redis.Do("ACL", "SETUSER", "envoy", "on", ">secret", "~*", "&*", "+@all"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	authority, cert, key := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writeIdentity(t, client, cert, key)
	copyFile(t, authority, cert) // it is self-signed
	environ := []string{
		"REDIS_URL=" + redis.Addr, "REDIS_AUTH=envoy:secret", "REDIS_TLS=true", "REDIS_TLS_CACERT=" + authority,
		"REDIS_TLS_CLIENT_CERT=" + cert, "REDIS_TLS_CLIENT_KEY=" + key,
	}
	t.Run("verified", func(t *testing.T) { checkShared(t, environ...) })

	environ[0] = "REDIS_URL=" + strings.Replace(redis.Addr, "127.0.0.1", "0.0.0.0", 1) // not in the certificate
	root, _ := directory(t, basic)
	_, _, err := open(t, append(environ, "RUNTIME_ROOT="+root, "METE_STORE=")...)
	if err == nil || !strings.Contains(err.Error(), "certificate is valid for 127.0.0.1, not 0.0.0.0") {
		t.Errorf("with a name that is not in the certificate: %v", err)
	}
	t.Run("without the name", func(t *testing.T) {
		checkShared(t, append(environ, "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true")...)
	})
}

func TestStore_Socket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "redis.sock")
	proctest.StartRedis(t, "--unixsocket", path)
	checkShared(t, "REDIS_SOCKET_TYPE=unix", "REDIS_URL="+path)
}

func TestStore_Cluster(t *testing.T) {
	t.Parallel()
	cluster := proctest.StartCluster(t, 3, 0)
	checkShared(t, "REDIS_TYPE=CLUSTER", "REDIS_URL="+strings.Join(cluster.Addrs, ","))
}

func TestStore_Sentinel(t *testing.T) {
	t.Parallel()
	sentinel := proctest.StartSentinel(t)
	checkShared(t, "REDIS_TYPE=SENTINEL", "REDIS_URL="+sentinel.MasterName+","+strings.Join(sentinel.Addrs, ","))
}

// TestStore_Late starts the service before its Redis.
func TestStore_Late(t *testing.T) {
	redis := proctest.StartRedis(t)
	redis.Kill()
	root, _ := directory(t, basic)
	s, _, err := ratelimit.ReadSettings(append(ports[:len(ports):len(ports)], "RUNTIME_ROOT="+root, "METE_STORE=",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+redis.Addr, "REDIS_STARTUP_INITIAL_INTERVAL=10ms"))
	if err != nil {
		t.Fatal(err)
	}
	log, opened := newLockedLog(), make(chan error, 1)
	go func() {
		server, err := ratelimit.Open(t.Context(), s, slog.New(slog.NewTextHandler(log, nil)))
		if err == nil {
			ended, end := context.WithCancel(t.Context())
			end()
			err = server.Run(ended)
		}
		opened <- err
	}()
	log.wait(t, "store unreachable, trying again", 2)
	redis.Restart()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// writeIdentity writes the certificate and the private key of a client.
func writeIdentity(t *testing.T, client *tls.Config, cert, key string) {
	t.Helper()
	pair := client.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}
