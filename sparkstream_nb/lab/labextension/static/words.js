// The words of SiddhiQL. Written by `python -m sparkstream_nb.lab.vocabulary`.

export const KEYWORDS = `
  aggregate aggregation all and app as asc at begin bool by current day days define delete desc double end events
  every expired false first float for from full function group having hour hours in inner insert int into is join last
  left limit long millisec millisecond milliseconds min minute minutes month months not null object of offset on or
  order outer output partition per raw return right sec second seconds select set snapshot stream string table trigger
  true unidirectional update week weeks window with within year years
`.trim().split(/\s+/);

export const TYPES = `
  bool double float int long object string
`.trim().split(/\s+/);

export const UNITS = `
  day days hour hours millisec millisecond milliseconds min minute minutes month months sec second seconds week weeks
  year years
`.trim().split(/\s+/);

export const FUNCTIONS = `
  UUID and avg cast coalesce convert coordination:isLeader count createSet currentTimeMillis default distinctCount
  eventTimestamp geo:distance ifThenElse instanceOfBoolean instanceOfDouble instanceOfFloat instanceOfInteger
  instanceOfLong instanceOfString json:getBool json:getDouble json:getFloat json:getInt json:getLong json:getObject
  json:getString json:group json:groupAsObject json:isExists json:setElement json:toObject json:toString list:add
  list:addAll list:clear list:clone list:collect list:contains list:containsAll list:containsAny list:create list:get
  list:indexOf list:isEmpty list:isList list:lastIndexOf list:merge list:remove list:removeAll list:removeByIndex
  list:retainAll list:setValue list:size list:sort map:clear map:clone map:collect map:combineByKey map:containsKey
  map:containsValue map:create map:createFromJSON map:createFromXML map:get map:isEmpty map:isMap map:keys map:merge
  map:put map:putAll map:putIfAbsent map:remove map:replace map:replaceAll map:size map:toJSON map:toXML map:values
  math:abs math:acos math:asin math:atan math:bin math:cbrt math:ceil math:conv math:copySign math:cos math:cosh
  math:e math:exp math:floor math:getExponent math:hex math:isInfinite math:isNan math:ln math:log math:log10
  math:log2 math:max math:min math:oct math:parseDouble math:parseFloat math:parseInt math:parseLong math:percentile
  math:pi math:power math:rand math:round math:signum math:sin math:sinh math:sqrt math:tan math:tanh math:toDegrees
  math:toRadians max maxForever maximum min minForever minimum or regex:find regex:group regex:lookingAt regex:matches
  sizeOfSet stdDev str:charAt str:charFrequency str:coalesce str:concat str:contains str:equalsIgnoreCase
  str:fillTemplate str:groupConcat str:hex str:length str:locate str:lower str:regexp str:repeat str:replaceAll
  str:replaceFirst str:reverse str:split str:strcmp str:substr str:trim str:unhex str:upper sum time:currentDate
  time:currentTime time:currentTimestamp time:date time:dateAdd time:dateDiff time:dateFormat time:dateSub
  time:dayOfWeek time:extract time:timestampInMilliseconds time:timezoneConvert time:utcTimestamp unionSet
  unitconversion:MmTokm unitconversion:cmToft unitconversion:cmToin unitconversion:cmTokm unitconversion:cmTom
  unitconversion:cmTomi unitconversion:cmTomm unitconversion:cmTonm unitconversion:cmToum unitconversion:cmToyd
  unitconversion:dToh unitconversion:gTokg unitconversion:gTomg unitconversion:gToug unitconversion:hTom
  unitconversion:hTos unitconversion:kgToLT unitconversion:kgToST unitconversion:kgTog unitconversion:kgTolb
  unitconversion:kgTooz unitconversion:kgTost unitconversion:kgTot unitconversion:kmTocm unitconversion:kmToft
  unitconversion:kmToin unitconversion:kmTom unitconversion:kmTomi unitconversion:kmTomm unitconversion:kmTonm
  unitconversion:kmToum unitconversion:kmToyd unitconversion:lTom3 unitconversion:lToml unitconversion:m3Tol
  unitconversion:mTocm unitconversion:mToft unitconversion:mTomm unitconversion:mTos unitconversion:mToyd
  unitconversion:miTokm unitconversion:mlTol unitconversion:sToms unitconversion:sTons unitconversion:sTous
  unitconversion:tTog unitconversion:tTokg unitconversion:yTod
`.trim().split(/\s+/);

export const STREAM_FUNCTIONS = `
  json:tokenize json:tokenizeAsObject list:tokenize log map:tokenize pol2Cart reorder:akslack reorder:kslack
  str:tokenize throughput:throughput unique:deduplicate
`.trim().split(/\s+/);

export const WINDOWS = `
  batch cron delay expression expressionBatch externalTime externalTimeBatch frequent length lengthBatch lossyFrequent
  session sort time timeBatch timeLength unique:ever unique:externalTimeBatch unique:first unique:firstLengthBatch
  unique:firstTimeBatch unique:length unique:lengthBatch unique:time unique:timeBatch unique:timeLengthBatch
`.trim().split(/\s+/);
