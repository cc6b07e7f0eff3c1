import ArgumentParser
import CarillonExpression
import CarillonServer
import Foundation

struct ExpressionCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "expression", abstract: "Check and evaluate conditions.",
        discussion: """
            Conditions are written in the Common Expression Language: `price > 100 && symbol in ["A", "B"]`. \
            `carillon expression check` explains a condition; `carillon expression eval` evaluates expressions.
            """,
        subcommands: [ExpressionCheckCommand.self, ExpressionEvalCommand.self])
}

struct ExpressionCheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check",
        abstract: "Show the type of a condition, its cost, and the parts that an index can use.",
        discussion: """
            Names are declared with --variable; a size after the type, as in `tags=list(string):20`, limits what the \
            condition may cost. An error is shown with a caret under its place; the exit code is 65 then.
            """)

    @Argument(help: "The condition.")
    var condition: String

    @Option(name: .shortAndLong, help: "A name and its type, such as price=double or tags=list(string):20.")
    var variable: [String] = []

    @Option(help: "The namespace that is searched for names first.")
    var container = ""

    @Option(
        name: .customLong("extension"),
        help: "A function beyond the standard ones: \(ExpressionExtension.allCases.map(\.rawValue).joined(separator: ", "))."
    )
    var extensions: [String] = []

    @Flag(help: "Print one JSON object.")
    var json = false

    func run() async throws {
        try await reportingFaults {
            let environment = ExpressionEnvironment(
                try variable.map(Self.declaration), container: container,
                extensions: Set(try extensions.map(Self.extensionNamed)), zoneOffset: TimeZones.offset)
            do {
                report(try ExpressionProgram(condition, in: environment))
            } catch let error as ExpressionRefusal {
                guard json else {
                    throw CommandFault(
                        ExitStatus.refused, "the condition is not valid",
                        details: error.description.split(separator: "\n").map(String.init))
                }
                Printer(isJSON: true).print(["problems": Self.problems(of: error)], otherwise: "")
                throw ExitStatus.refused
            }
        }
    }

    private static func declaration(_ text: String) throws -> ExpressionEnvironment.Variable {
        let parts = text.split(separator: "=", maxSplits: 1)
        let typeAndSize = parts.count == 2 ? parts[1].split(separator: ":", maxSplits: 1) : []
        guard typeAndSize.count > 0, let type = ExpressionType(String(typeAndSize[0])) else {
            throw CommandFault(
                ExitCode(64),
                "\"\(text)\" is not a name with a type, such as price=double, names=list(string) or m=map(string, int)")
        }
        var size: Int?
        if typeAndSize.count > 1 {
            guard let number = Int(typeAndSize[1]), number >= 0 else {
                throw CommandFault(ExitCode(64), "the size in \"\(text)\" is not a number")
            }
            size = number
        }
        return .init(String(parts[0]), type, maximumSize: size)
    }

    private static func extensionNamed(_ name: String) throws -> ExpressionExtension {
        guard let found = ExpressionExtension(rawValue: name) else {
            throw CommandFault(ExitCode(64), "there is no extension \"\(name)\"")
        }
        return found
    }

    private func report(_ program: ExpressionProgram) {
        let terms = program.terms
        let alternatives = terms.alternatives.map { alternative -> OutputValue in
            .object([
                "terms": .list(alternative.terms.map { .text($0.description) }),
                "residue": .list(alternative.residue.map { .text($0) }),
            ])
        }
        let cost: [String: OutputValue] = [
            "least": .number(Int64(program.cost.lowerBound)), "most": .number(Int64(program.cost.upperBound)),
        ]
        Printer(isJSON: json).print(
            ["type": .text("\(program.type)"), "cost": .object(cost), "index": .list(alternatives)],
            lines: Self.explanation(of: program, terms))
    }

    private static func explanation(of program: ExpressionProgram, _ terms: ExpressionTerms) -> [String] {
        var lines = [
            "type   \(program.type)",
            "cost   \(program.cost.lowerBound) to \(program.cost.upperBound), of \(program.environment.limits.cost)",
        ]
        for (number, alternative) in terms.alternatives.enumerated() {
            let parts = alternative.terms.map(\.description) + alternative.residue.map { "(not by an index) \($0)" }
            lines.append((number == 0 ? "index  " : "or     ") + parts.joined(separator: "  and  "))
        }
        return lines
    }

    private static func problems(of refusal: ExpressionRefusal) -> OutputValue {
        .list(
            refusal.problems.map { problem in
                .object([
                    "code": .text(problem.code.name), "message": .text(problem.message),
                    "position": .number(Int64(problem.position.offset)), "line": .number(Int64(problem.position.line)),
                    "column": .number(Int64(problem.position.column)),
                ])
            })
    }
}
