#if !Client
    #error("CarillonClient needs the trait Client: .package(url: \"…\", from: \"…\", traits: [\"Client\"])")
#endif
