// SPDX-License-Identifier: Apache-2.0

// Package inpostgres puts mete and its rivals, with their buckets in PostgreSQL,
// behind one function, each set up as its documentation means it to be used and
// without work in the call that its user would not have to do.
package inpostgres

import (
	"context"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

// A Place is where a subject keeps its buckets, and how.
type Place struct {
	// URL names a database in which nothing of the subject's is yet.
	URL string

	// Logged asks for an ordinary table instead of an unlogged one.
	Logged bool

	// Connections is how many there may be at a time, for those that hold one
	// during each take.
	Connections int
}

// A Subject makes limiters of one kind.
type Subject struct {
	Name string

	// New connects, and makes the subject's table.
	New func(context.Context, Place, subject.Quota) (remote.Limiter, error)
}

// The names of the subjects.
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
