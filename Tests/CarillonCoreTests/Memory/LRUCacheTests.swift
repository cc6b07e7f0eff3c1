import CarillonCore
import Testing

struct LRUCacheTests {
    @Test func `the oldest entries are forgotten, and entries that are read stay`() {
        var values = LRUCache<Int, Int>(capacity: 4)
        for key in 0..<100 {
            values[key] = key
            #expect(values[0] == 0)
            #expect(values.count <= 8)
        }
        #expect(values[99] == 99)
        #expect(values[50] == nil)
    }

    @Test func `a value is changed and removed wherever it is`() {
        var values = LRUCache<Int, Int>(capacity: 2)
        for key in 0..<3 { values[key] = key }
        values[0] = 10
        #expect(values[0] == 10)
        values[0] = nil
        values[1] = nil
        #expect(values[0] == nil)
        #expect(values[1] == nil)
        #expect(values.count == 1)
        for key in 3..<6 { values[key] = key }
        values.removeAll { $0 != 4 }
        #expect(values.count == 1)
        #expect(values[4] == 4)
        for key in 5..<9 { values[key] = key }
        values.removeValues { $0 < 8 }
        #expect(values.count == 1)
        #expect(values[8] == 8)
        values.removeAll()
        #expect(values.count == 0)
    }
}
