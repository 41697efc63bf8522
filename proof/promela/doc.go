// SPDX-License-Identifier: Apache-2.0

// Package promela has Promela models of the protocols that keep the promises under concurrency and failures. Its tests search
// all executions of each model with the model checker Spin. README.md lists the models and their properties.
package promela
