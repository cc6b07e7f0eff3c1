/// Values with small numbers, which are reused after a removal. The values of a row have consecutive numbers.
struct Slots<Value> {
    private var values: [Value] = []
    /// The first numbers of free rows, by the length of the row.
    private var free: [Int: [Int32]] = [:]
    private(set) var count = 0

    subscript(number: Int32) -> Value {
        get { values[Int(number)] }
        _modify { yield &values[Int(number)] }
    }

    func row(from first: Int32, _ count: Int) -> [Value] {
        count == 0 ? [] : Array(values[Int(first)..<Int(first) + count])
    }

    mutating func insert(_ value: Value) -> Int32 { insert(CollectionOfOne(value)) }

    /// Returns the number of the first value of the row.
    mutating func insert(_ row: some Collection<Value>) -> Int32 {
        guard !row.isEmpty else { return 0 }
        count += row.count
        guard let first = free[row.count]?.popLast() else {
            values.append(contentsOf: row)
            return Int32(values.count - row.count)
        }
        for (offset, value) in row.enumerated() { values[Int(first) + offset] = value }
        return first
    }

    mutating func remove(_ number: Int32) { remove(from: number, 1) }

    mutating func remove(from first: Int32, _ count: Int) {
        guard count > 0 else { return }
        self.count -= count
        free[count, default: []].append(first)
    }
}
