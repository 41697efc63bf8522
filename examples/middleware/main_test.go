// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestHandler_LimitsEachAddress(t *testing.T) {
	limiter, err := newLimiter()
	if err != nil {
		t.Fatal(err)
	}
	handler, err := newHandler(limiter)
	if err != nil {
		t.Fatal(err)
	}
	status := func(addr string) int {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = addr + ":40000"
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	allowed := 0
	for range 5 {
		if status("192.0.2.1") == http.StatusOK {
			allowed++
		}
	}
	if allowed != 5 {
		t.Errorf("allowed %d of 5 requests at once, want all", allowed)
	}
	if got := status("192.0.2.2"); got != http.StatusOK {
		t.Errorf("another address: status %d, want %d", got, http.StatusOK)
	}
	// The bucket refills meanwhile, so a few more requests may be allowed before the first denial.
	for range 1000 {
		if status("192.0.2.1") == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("1,000 requests more were all allowed, want a denial")
}

func TestHandler_LimitsUploads(t *testing.T) {
	limiter, err := newLimiter()
	if err != nil {
		t.Fatal(err)
	}
	handler, err := newHandler(limiter)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{200, 200, 429} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("POST", "/uploads", nil))
		if w.Code != want {
			t.Errorf("upload %d: status %d, want %d", i, w.Code, want)
		}
	}
}

func TestHandler_LimitsEachKey(t *testing.T) {
	limiter, err := newLimiter()
	if err != nil {
		t.Fatal(err)
	}
	handler, err := newHandler(limiter)
	if err != nil {
		t.Fatal(err)
	}
	status := func(key string) int {
		r := httptest.NewRequest("GET", "/search", nil)
		r.Header.Set("X-API-Key", key)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	for i := range 20 {
		if got := status("k1"); got != http.StatusOK {
			t.Errorf("search %d: status %d, want %d", i, got, http.StatusOK)
		}
	}
	for key, want := range map[string]int{"k2": http.StatusOK, "": http.StatusForbidden} {
		if got := status(key); got != want {
			t.Errorf("key %q: status %d, want %d", key, got, want)
		}
	}
	// The bucket refills meanwhile, so a few more requests may be allowed before the first denial.
	for range 1000 {
		if status("k1") == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("1,000 searches more were all allowed, want a denial")
}
