// SPDX-License-Identifier: Apache-2.0

//go:build !race

package httpapi_test

import (
	"testing"

	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
)

// The race detector empties pools at random, so that allocations cannot be counted.

// To find that all attributes are known costs no memory.
func TestUnknownAttributes_AllocateNothing(t *testing.T) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	api := apiOver(t, store, readsMuch, httpapi.Config{})
	one := newClient(`{"attributes":{"header:x-api-key":"k1"}}`)
	four := newClient(`{"attributes":{"header:x-api-key":"k1","jwt:plan":"free","header:x-cost":"1","ip:address":"192.0.2.1"}}`)
	for range 50 { // from here on, both are denied
		one.ask(api)
	}
	if of1, of4 := testing.AllocsPerRun(1000, func() { one.ask(api) }), testing.AllocsPerRun(1000, func() { four.ask(api) }); of4 > of1 {
		t.Errorf("a take with four known attributes makes %v allocations, with one %v", of4, of1)
	}
}
