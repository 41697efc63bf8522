// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/metehq/mete/proof/meted"
)

// startTLS runs the server with a certificate of its own at the main address, and
// returns what clients trust.
func startTLS(t *testing.T, policy, settings string) (*meted.Server, *tls.Config) {
	t.Helper()
	dir := t.TempDir()
	roots := certify(t, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	write(t, filepath.Join(dir, "policy.json"), policy)
	s := meted.Start(t, "policy: policy.json\ntls: {cert: cert.pem, key: key.pem}\n"+settings, dir)
	s.URL = "https://" + s.Addr
	return s, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
}

// certify writes a certificate of this machine and its key.
func certify(t *testing.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write(t, certFile, string(cert))
	write(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cert) {
		t.Fatal("the certificate that was just made is none")
	}
	return roots
}

// over returns a transport that trusts these roots, with connections of its own.
func over(config *tls.Config) *http.Transport {
	return &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true}
}
