package import CarillonExpression
package import CarillonWire

/// The audience of an update: a condition over device parameters. The condition cannot use the present time, so that the result
/// for the same parameters is always the same.
package struct Audience: Sendable {
    /// A parameter with its value, or with one element of a list.
    package struct Key: Hashable, Sendable {
        package var parameter: String
        package var value: Value

        package enum Value: Hashable, Sendable {
            case text(String)
            case number(Double)
            case truth(Bool)
        }

        init?(_ parameter: String, _ value: ExpressionValue) {
            self.parameter = parameter
            switch value {
            case .string(let text): self.value = .text(text)
            case .int(let number):
                guard let double = Double(exactly: number) else { return nil }
                self.value = .number(double)
            case .double(let number): self.value = .number(number)
            case .bool(let truth): self.value = .truth(truth)
            default: return nil
            }
        }
    }

    /// The keys of which the devices of an audience must have some.
    package indirect enum Lookup: Sendable {
        /// The device has at least one of these keys.
        case keys([Key])
        /// At least one of these lookups matches the device.
        case any([Lookup])
        /// All of these lookups match the device, so the index can use any one of them.
        case all([Lookup])
    }

    private let program: ExpressionProgram
    /// Nil if no index can find the devices.
    package let lookup: Lookup?
    /// The approximate memory of the program, in bytes.
    package let weight: Int

    /// - Throws: ``ExpressionRefusal`` with all problems.
    package init(_ source: String, over rules: ParameterRules, in language: AudienceLanguage) throws(ExpressionRefusal) {
        let program = try ExpressionProgram(source, in: language.environment(over: rules))
        guard program.cost.upperBound <= UpdateLimits.audienceCost else {
            throw ExpressionRefusal(
                source: source,
                sentence:
                    "the audience may cost \(program.cost.upperBound) units for a device, more than the \(UpdateLimits.audienceCost) it may",
                code: .cost)
        }
        guard program.type == .bool || program.type == .dynamic else {
            throw ExpressionRefusal(source: source, sentence: "an audience is a bool, not \(program.type)", code: .type)
        }
        self.program = program
        weight = source.utf8.count + Self.bytesPerNode * program.nodeCount
        lookup = program.need.flatMap(Self.makeLookup)
    }

    /// The approximate bytes of a name, a constant or an operator in the tree, and of a constant in a set and in ``lookup``.
    private static let bytesPerNode = 128

    private static func makeLookup(_ need: ExpressionNeed) -> Lookup? {
        switch need {
        case .oneOf(let variable, let constants):
            let keys = constants.compactMap { Key(variable, $0) }
            return keys.count == constants.count ? .keys(keys) : nil
        case .any(let needs):
            let lookups = needs.compactMap(makeLookup)
            return lookups.count == needs.count ? .any(lookups) : nil
        case .all(let needs):
            let lookups = needs.compactMap(makeLookup)
            return lookups.isEmpty ? nil : .all(lookups)
        }
    }

    /// Whether a device belongs to the audience.
    ///
    /// - Throws: ``ExpressionError`` if the device lacks a parameter that the audience needs, or if the evaluation fails. The
    ///   device then does not belong to the audience.
    package func holds(for facts: DeviceFacts) throws(ExpressionError) -> Bool { try program.holds(facts.bindings) }

    /// Returns the same result in less time; nil instead of an error.
    package func verdict(for facts: DeviceFacts) -> Bool? { program.verdict(facts.bindings) }
}

/// The language of audiences: the names and functions that audiences can use.
package struct AudienceLanguage: Sendable {
    private let zoneOffset: @Sendable (String, ExpressionTimestamp) -> Int?

    package init(zoneOffset: @escaping @Sendable (String, ExpressionTimestamp) -> Int?) { self.zoneOffset = zoneOffset }

    func environment(over rules: ParameterRules) -> ExpressionEnvironment {
        let declared = rules.parameters.sorted { $0.key < $1.key }.map { name, type in
            ExpressionEnvironment.Variable(
                name, type.type, maximumSize: type == .strings ? ParameterRules.mostElements : ParameterRules.mostTextBytes)
        }
        let own = ParameterRules.own.sorted().map { ExpressionEnvironment.Variable($0, .string, maximumSize: 256) }
        return ExpressionEnvironment(
            own + declared, extensions: Set(ExpressionExtension.allCases), limits: .ofAudiences, usesSets: true,
            zoneOffset: zoneOffset)
    }

    /// Returns the values and keys of a device for audiences with the same rules.
    package func facts(
        _ values: ParameterValues, device: DeviceID, user: UserID?, app: AppID, by rules: ParameterRules
    ) -> DeviceFacts {
        var bindings = ExpressionBindings(environment(over: rules))
        var keys: [Audience.Key] = []
        func bind(_ name: String, _ value: ExpressionValue?) {
            bindings[name] = value
            switch value {
            case .list(let elements)?: keys += elements.compactMap { Audience.Key(name, $0) }
            case let value?: if let key = Audience.Key(name, value) { keys.append(key) }
            case nil: break
            }
        }
        for (name, type) in rules.parameters { bind(name, values.value(name, as: type)) }
        bind("device", .string(device.description))
        bind("app", .string(app.description))
        bind("user", user.map { .string($0.text) })
        return DeviceFacts(bindings: bindings, keys: keys)
    }
}

extension ExpressionLimits {
    fileprivate static let ofAudiences: ExpressionLimits = {
        var limits = ExpressionLimits()
        limits.bytes = UpdateLimits.audienceBytes
        limits.constants = UpdateLimits.audienceConstants
        // In an operand of ||, each constant comes with an operator and a name.
        limits.nodes = 4 * UpdateLimits.audienceConstants
        return limits
    }()
}

/// The values of a device in the form that audiences evaluate.
package struct DeviceFacts: Sendable {
    let bindings: ExpressionBindings
    /// The keys by which the index finds candidates for the device.
    package let keys: [Audience.Key]
}
