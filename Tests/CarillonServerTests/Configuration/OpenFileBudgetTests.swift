import CarillonServer
import Testing

struct OpenFileBudgetTests {
    private func fit(
        _ sockets: Int, _ connections: Int, files: Int, asked: (sockets: Bool, connections: Bool)
    ) -> OpenFileBudget.Fit {
        OpenFileBudget(files: files, calls: 20).fit(
            sockets: .init(sockets, isAsked: asked.sockets), connections: .init(connections, isAsked: asked.connections))
    }

    @Test func `limits fit up to the last available file`() {
        for asked in [(true, true), (false, false)] {
            #expect(fit(800, 100, files: 1000, asked: asked) == .fits)
            #expect(fit(801, 100, files: 1000, asked: asked) != .fits)
        }
    }

    @Test func `a requested limit without enough files is refused`() {
        #expect(fit(800, 101, files: 1000, asked: (true, true)) == .tooMany(room: 900))
        #expect(fit(901, 10, files: 1000, asked: (true, false)) == .tooMany(room: 900))
        #expect(fit(10, 901, files: 1000, asked: (false, true)) == .tooMany(room: 900))
        #expect(fit(.max, .max, files: 1000, asked: (true, true)) == .tooMany(room: 900))
        #expect(fit(1, 1, files: 10, asked: (true, true)) == .tooMany(room: 0))
    }

    @Test func `a default is lowered, and a requested limit is kept`() {
        let neither = (false, false)
        #expect(fit(200_000, 20_000, files: 1000, asked: neither) == .lowered(sockets: 810, connections: 90))
        #expect(fit(200_000, 20_000, files: 100_000, asked: neither) == .lowered(sockets: 89_910, connections: 9_990))
        #expect(fit(200_000, 3, files: 1000, asked: (false, true)) == .lowered(sockets: 897, connections: 3))
        #expect(fit(850, 20_000, files: 1000, asked: (true, false)) == .lowered(sockets: 850, connections: 50))
        #expect(fit(200_000, 20_000, files: 0, asked: neither) == .lowered(sockets: 1, connections: 1))
    }
}
