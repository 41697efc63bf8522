// SPDX-License-Identifier: Apache-2.0

// Package inpostgres gives mete and its rivals with buckets in PostgreSQL one interface. Each is configured
// as its documentation recommends, and does no work that its users would not need.
package inpostgres

import (
	"context"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

// A Place is the database of a subject.
type Place struct {
	// URL is the URL of a database without tables of the subject.
	URL string

	// Logged selects an ordinary table instead of an unlogged one.
	Logged bool

	// Connections is the maximum number of connections, for subjects that hold one during each take.
	Connections int
}

// A Subject makes limiters of one kind.
type Subject struct {
	Name string

	// New connects and creates the table.
	New func(context.Context, Place, subject.Quota) (remote.Limiter, error)
}

const (
	MeteStore   = "mete pgstore"
	MeteLimiter = "mete Limiter"
	Classic     = "classic"
	Single      = "single upsert"
)

// All are the subjects, mete first.
var All = []Subject{
	{MeteStore, newMeteStore},
	{MeteLimiter, newMeteLimiter},
	{Classic, newClassic},
	{Single, newSingle},
}
