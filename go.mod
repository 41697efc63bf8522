module github.com/metehq/mete

go 1.26.0
