import ArgumentParser
import CarillonBasics
import CarillonExpression
import CarillonServer
import Foundation

struct ExpressionEvalCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "eval",
        abstract: "Read one JSON object per line from standard input, and print the value of its expression.",
        discussion: """
            {"expr": "x + 1", "variables": {"x": {"int": "4"}}} is answered with {"value": {"int": "5"}}, and an expression \
            without a value with {"error": "…", "code": "…", "position": 3}: the position counts code points from 0, and is \
            missing if the line itself cannot be read. Each answer is written before the next line is read.

            Values are tagged: null, bool, int and uint (text), double (a number, or "-0.0", "NaN", "Infinity", \
            "-Infinity"), string, bytes (base64), list, map (a list of pairs), timestamp (RFC 3339), duration ("1.5s"), type (its name).

            "types": {"x": "int", "tags": "list(string)"} checks the expression first; without it, names and types are \
            checked during the evaluation. "container": "a.b" is the namespace that is searched for names first, \
            "extensions": ["version"] enables functions.
            """)

    func run() async throws {
        try await reportingFaults(interrupted: "stopped reading") {
            var lines = InputLines(limit: 1 << 20)
            while let line = lines.next() {
                switch line {
                case .line(let bytes): Printer.printJSON(Self.answer(to: bytes))
                case .tooLong: Printer.printJSON(Self.failure("the line is longer than 1 MiB"))
                }
            }
        }
    }

    static func answer(to line: [UInt8]) -> [UInt8] {
        do {
            let (source, environment, bindings, isChecked) = try request(line)
            let program =
                try isChecked
                ? ExpressionProgram(source, in: environment) : ExpressionProgram.unchecked(source, in: environment)
            let value = try program.value(bindings)
            let answer = JSONWriter.object { writer in
                writer.key("value")
                TaggedValue.write(value, to: &writer)
            }
            return answer.count <= TaggedValue.longest ? answer : failure("the value is longer than 16 MiB", "size")
        } catch let refusal as ExpressionRefusal {
            let first = refusal.problems[0]
            return failure(first.message, first.code.name, first.position)
        } catch let error as ExpressionError {
            return failure(error.message, error.code.name, error.position)
        } catch {
            let fault = error as? TaggedValue.Fault
            return failure(fault?.sentence ?? FaultSentence.of(error), fault?.code ?? "line")
        }
    }

    private static func failure(_ message: String, _ code: String = "line", _ position: ExpressionPosition? = nil) -> [UInt8]
    {
        JSONWriter.object { writer in
            writer.member("error", message)
            writer.member("code", code)
            writer.member("position", position?.offset)
        }
    }

    private static func request(
        _ line: [UInt8]
    ) throws(TaggedValue.Fault) -> (String, ExpressionEnvironment, ExpressionBindings, isChecked: Bool) {
        guard let json = JSONValue(parsing: line, depth: 200) else {
            throw .init(NumberOutOfRange(in: line, depth: 200)?.clauseWithNumber ?? "the line is not JSON")
        }
        guard case .object(let members) = json else { throw .init("the line is not a JSON object") }
        let known = ["expr", "variables", "types", "container", "extensions"]
        if let stranger = members.first(where: { !known.contains($0.name) }) {
            throw .init(
                "there is no member \"\(stranger.name.prefix(40))\"; the known members are \(known.joined(separator: ", "))")
        }
        guard case .string(let source)? = json["expr"] else { throw .init("\"expr\" must be a string") }
        var values: [(String, ExpressionValue)] = []
        for member in try object("variables", json) { values.append((member.name, try TaggedValue.read(member.value))) }
        var types: [String: ExpressionType] = [:]
        for member in try object("types", json) {
            guard case .string(let text) = member.value, let type = ExpressionType(text) else {
                throw .init("the type of \"\(member.name.prefix(40))\" cannot be read")
            }
            types[member.name] = type
        }
        var extensions: Set<ExpressionExtension> = []
        if let named = json["extensions"] {
            guard case .array(let names) = named else { throw .init("\"extensions\" must be a list") }
            for name in names {
                guard case .string(let name) = name, let found = ExpressionExtension(rawValue: name) else {
                    throw .init(
                        "there is no such extension; the extensions are \(ExpressionExtension.allCases.map(\.rawValue).joined(separator: ", "))"
                    )
                }
                extensions.insert(found)
            }
        }
        var container = ""
        if let named = json["container"] {
            guard case .string(let name) = named else { throw .init("\"container\" must be a string") }
            container = name
        }
        let declared = types.sorted { $0.key < $1.key }.map { ExpressionEnvironment.Variable($0.key, $0.value) }
        for (name, value) in values {
            guard let type = types[name], !TaggedValue.fits(value, type) else { continue }
            throw .init(
                "the variable \"\(name.prefix(40))\" is declared as \(type), but its value has the type \(value.type)",
                code: "variable_type")
        }
        let others = values.filter { types[$0.0] == nil }.map { ExpressionEnvironment.Variable($0.0, .dynamic) }
        let environment = ExpressionEnvironment(
            declared + others, container: container, extensions: extensions, zoneOffset: TimeZones.offset)
        var bindings = ExpressionBindings(environment)
        for (name, value) in values { bindings[name] = value }
        return (source, environment, bindings, isChecked: json["types"] != nil)
    }

    private static func object(_ name: String, _ json: JSONValue) throws(TaggedValue.Fault) -> [JSONValue.Member] {
        switch json[name] {
        case nil: return []
        case .object(let members)?: return members
        default: throw .init("\"\(name)\" must be an object")
        }
    }
}

/// The lines of standard input, as they arrive.
struct InputLines {
    enum Line {
        case line([UInt8])
        case tooLong
    }

    private let limit: Int
    private var buffer: [UInt8] = []
    private var isEnded = false
    private var isSkipping = false

    init(limit: Int) { self.limit = limit }

    mutating func next() -> Line? {
        var searched = 0
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                let line = Array(buffer[..<end])
                buffer.removeSubrange(...end)
                if !isSkipping { return line.count > limit ? .tooLong : .line(line) }
                isSkipping = false
                searched = 0
                continue
            }
            if buffer.count > limit {
                let wasSkipping = isSkipping
                isSkipping = true
                buffer.removeAll()
                if !wasSkipping { return .tooLong }
            }
            searched = buffer.count
            if isEnded {
                guard !buffer.isEmpty, !isSkipping else { return nil }
                defer { buffer.removeAll() }
                return .line(buffer)
            }
            read()
        }
    }

    private mutating func read() {
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        var count = 0
        repeat { count = Foundation.read(STDIN_FILENO, &piece, piece.count) } while count < 0 && errno == EINTR
        // A read error counts as the end of the input.
        isEnded = count <= 0
        buffer += piece.prefix(max(0, count))
    }
}
