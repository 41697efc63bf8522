// SPDX-License-Identifier: Apache-2.0

// Package smallfile reads files of bounded size.
package smallfile

import (
	"crypto/x509"
	"fmt"
	"io"
	"os"
)

// maxAuthorityBytes bounds a file of CA certificates. All public CAs together need 250 KiB.
const maxAuthorityBytes = 4 << 20

// Read returns the contents of a file. It fails if the file has more than most bytes.
func Read(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: larger than %d bytes", path, most)
	}
	return data, err
}

// Authorities returns the CA certificates in a PEM file.
func Authorities(path string) (*x509.CertPool, error) {
	text, err := Read(path, maxAuthorityBytes)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", path)
	}
	return pool, nil
}
