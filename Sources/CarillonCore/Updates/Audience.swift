package import CarillonExpression
package import CarillonWire

/// For whom an update is: a condition over the parameters of devices. Nobody asks it for the time, so that for the same parameters it
/// always answers the same.
package struct Audience: Sendable {
    /// A parameter and one value of it.
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

    private let program: ExpressionProgram
    /// It holds only for a device that has one of the keys of each list's alternative: for each alternative a choice of lists, of which
    /// one is enough to look for. Nil where some alternative has none.
    package let choices: [[[Key]]]?

    /// - Throws: ``ExpressionRefusal`` with all that is wrong.
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
        let declared = Set(rules.parameters.keys).union(ParameterRules.own)
        choices = Self.choices(program.terms, declared)
    }

    private static func choices(_ terms: ExpressionTerms, _ declared: Set<String>) -> [[[Key]]]? {
        var choices: [[[Key]]] = []
        for alternative in terms.alternatives {
            let lists = alternative.terms.compactMap { term -> [Key]? in
                guard !term.isNegated, declared.contains(term.expression),
                    term.comparison == .equal || term.comparison == .oneOf
                else { return nil }
                let keys = term.constants.map { Key(term.expression, $0) }
                return keys.contains(nil) ? nil : keys.compactMap(\.self)
            }
            guard !lists.isEmpty else { return nil }
            choices.append(lists)
        }
        return choices
    }

    /// Whether a device belongs to it.
    ///
    /// - Throws: ``ExpressionError`` where it speaks of what the device does not say, or what cannot be: the device does not belong to it.
    package func holds(for facts: DeviceFacts) throws(ExpressionError) -> Bool { try program.holds(facts.bindings) }
}

/// What audiences can speak of.
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
            own + declared, extensions: Set(ExpressionExtension.allCases), zoneOffset: zoneOffset)
    }

    /// What is known of a device, for audiences over the same rules.
    package func facts(
        _ values: ParameterValues, device: DeviceID, user: UserID?, app: AppID, by rules: ParameterRules
    ) -> DeviceFacts {
        var bindings = ExpressionBindings(environment(over: rules))
        var keys: [Audience.Key] = []
        func bind(_ name: String, _ value: ExpressionValue?) {
            bindings[name] = value
            if let value, let key = Audience.Key(name, value) { keys.append(key) }
        }
        for (name, type) in rules.parameters { bind(name, values.value(name, as: type)) }
        bind("device", .string(device.description))
        bind("app", .string(app.description))
        bind("user", user.map { .string($0.text) })
        return DeviceFacts(bindings: bindings, keys: keys)
    }
}

/// What is known of a device, as audiences look at it.
package struct DeviceFacts: Sendable {
    let bindings: ExpressionBindings
    /// By which it is found.
    package let keys: [Audience.Key]
}
