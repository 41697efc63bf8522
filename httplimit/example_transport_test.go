// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/metehq/mete/httplimit"
)

// One Transport for the whole process: what one part of it learns of a server,
// all others keep to.
func ExampleTransport() {
	server := httptest.NewServer(hello)
	defer server.Close()

	client := &http.Client{Transport: httplimit.NewTransport(httplimit.TransportConfig{
		Key: func(r *http.Request) string { return r.URL.Host + " " + r.Header.Get("Authorization") },
	})}
	defer client.CloseIdleConnections()
	res, err := client.Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	fmt.Println(res.Status)
	// Output: 200 OK
}
